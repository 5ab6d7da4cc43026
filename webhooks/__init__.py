"""Messages to programs outside, when something happened: signed, retried, bounded. A follower of the trail."""
