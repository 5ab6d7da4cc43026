"""The pages of the room."""
