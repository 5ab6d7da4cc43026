"""A database with nobody's work in it: an operator, an administrator, and a tenant of whom nothing is known yet."""

from lab.pictures.scene import Scene
from people.models import Tenant, TenantRole, User


def fill() -> Scene:
    """Make those who look."""
    people = {
        "olga": User.objects.create(username="olga", first_name="Olga", role=User.Role.OPERATOR),
        "admin": User.objects.create(username="petra", first_name="Petra", role=User.Role.ADMIN),
        "max": User.objects.create(username="max", first_name="Max"),
    }
    acme = Tenant.objects.create(name="Acme", slug="acme")
    TenantRole.objects.create(user=people["max"], tenant=acme, role=TenantRole.Role.MEMBER)
    pages = ("servers", "partitions", "requests", "evidence", "activity")
    return Scene(people, {f"portal:{name}": [acme.public_id] for name in pages})
