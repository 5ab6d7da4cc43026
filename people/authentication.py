"""API tokens: who shows one, for which scope and from where stands in the trail; what cannot be recorded is refused."""

from typing import TYPE_CHECKING, Any, Final

from knox.auth import TokenAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotFound
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from audit.request_id import current_address
from people import given, limits, operations, suspension
from people.api.problems import Problem
from people.models import Token
from people.scopes import scopes_of

if TYPE_CHECKING:
    from rest_framework.views import APIView  # which imports this module, by its setting

NO_SCOPE: Final = ""


class Rests(AuthenticationFailed):
    """A token that is good, but not now: the sentence says until when."""


class RecordedTokenAuthentication(TokenAuthentication):  # type: ignore[misc]  # knox has no types
    """knox's tokens, each use recorded once an hour, scope and address, and each refusal once a minute and address.

    A view names what a token must be for in `required_scope`. Expired tokens are refused and stay: knox would remove
    them without a trace. Too many refusals of one address, and too many requests of one person, are told to wait.
    """

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """Give the person and the token, or None without one. Raises AuthenticationFailed, and Problem (429)."""
        try:
            found: tuple[Any, Token] | None = super().authenticate(request)
        except Rests:
            raise
        except (AuthenticationFailed, UnicodeDecodeError) as error:
            operations.record_token_refused(reason="it is unknown, expired or revoked, or its person is closed out")
            source = limits.network_of(current_address())
            _pace("tokens-refused", source, limits.REFUSALS_A_MINUTE, "Too many tokens from there were refused.")
            raise AuthenticationFailed("This token is not valid. Make another one, and send it whole.") from error
        if found is not None:
            whose = str(found[0].pk)
            _pace("requests", whose, limits.REQUESTS_A_MINUTE, "This person's tokens asked too often within a minute.")
            operations.record_token_use(token=found[1], scope=scope_of(request))
        return found

    def validate_user(self, auth_token: Token) -> tuple[Any, Token]:
        """Give the person, narrowed to the token's tenant if it is made for one, whatever they are besides.

        Raises AuthenticationFailed, and Rests for a token that is good but not now.
        """
        found: tuple[Any, Token] = super().validate_user(auth_token)
        if suspension.stops(auth_token):
            operations.record_token_refused(reason="its tenant is suspended", token=auth_token)
            raise Rests("This token's tenant is suspended. Ask the operators of this site.")
        if given.owes(found[0]):
            operations.record_token_refused(reason="its person has not changed a given password yet", token=auth_token)
            raise Rests("This token's person has a password to change. Sign in and do that first.")
        found[0].narrowed_to = auth_token.tenant
        return found

    def _cleanup_token(self, auth_token: Token) -> bool:
        return auth_token.is_over


def _pace(what: str, source: str, most: int, sentence: str) -> None:
    seconds = limits.seconds_to_wait(what=what, source=source, most=most)
    if seconds:
        raise Problem("too_many_requests", sentence, retry_after_s=seconds)


class HasScope(BasePermission):
    """Let a token do only what it was made for and its person still may; without one (a session) this says nothing.

    A view that names no scope takes no token. Whose role has nothing to do with a view is told that it is not there.
    """

    message = "This token may not do this. Make one with the scope that the page names, if your role has it."

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Whether the shown token has the view's scope."""
        token = request.auth
        scope = scope_of(request)
        if not isinstance(token, Token):
            return True
        if scope == NO_SCOPE:
            reason = "nothing here is for tokens"
        elif scope not in {offered.name for offered in scopes_of(request.user)}:
            # A stranger does not learn what is there, so this comes before the token's own scopes.
            operations.record_token_refused(reason=f"its person has no right to {scope}", token=token)
            raise NotFound
        elif scope not in token.scopes:
            reason = f"it lacks the scope {scope}"
        else:
            return True
        operations.record_token_refused(reason=reason, token=token)
        return False


def scope_of(request: Request) -> str:
    """The scope that the view asks for, "" when it asks for none."""
    view = (request.parser_context or {}).get("view")
    return str(getattr(view, "required_scope", NO_SCOPE))
