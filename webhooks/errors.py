"""What can be wrong with an endpoint. Each message is a sentence for the page."""


class WebhookRefused(ValueError):
    """The root of this room's errors."""


class BadEndpoint(WebhookRefused):
    """An address, a name or a choice that cannot be used."""


class TooManyEndpoints(WebhookRefused):
    """As many as one may have."""
