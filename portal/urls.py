"""The tenant's pages; the operator's page of requests is beside them, because it decides what tenants asked for."""

from django.urls import path

from portal.views import landing, partitions, servers

app_name = "portal"
urlpatterns = [
    path("portal/", landing.portal, name="portal"),
    path("portal/<str:tenant>/servers/", servers.servers, name="servers"),
    path("portal/<str:tenant>/servers/<str:public_id>/", servers.server, name="server"),
    path("portal/<str:tenant>/partitions/", partitions.partitions, name="partitions"),
    path("portal/<str:tenant>/partitions/move/", partitions.move, name="move"),
    path("portal/<str:tenant>/partitions/take-back/", partitions.take_back, name="take_back"),
    path("portal/<str:tenant>/partitions/try-again/", partitions.try_again, name="try_again"),
    path("portal/<str:tenant>/partitions/<str:public_id>/", partitions.partition, name="partition"),
    path("portal/<str:tenant>/partitions/<str:public_id>/rename/", partitions.rename, name="partition_rename"),
    path("portal/<str:tenant>/partitions/<str:public_id>/retire/", partitions.retire, name="partition_retire"),
]
