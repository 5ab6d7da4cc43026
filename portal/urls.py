"""The tenant's pages; the operator's page of requests is beside them, because it decides what tenants asked for."""

from django.urls import path

from portal.views import activity, decisions, evidence, landing, partitions, requests, servers, settings

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
    path("portal/<str:tenant>/requests/", requests.requests, name="requests"),
    path("portal/<str:tenant>/requests/<str:public_id>/", requests.request_page, name="request"),
    path("portal/<str:tenant>/requests/<str:public_id>/comment/", requests.comment, name="request_comment"),
    path("portal/<str:tenant>/requests/<str:public_id>/withdraw/", requests.withdraw, name="request_withdraw"),
    path("portal/<str:tenant>/evidence/", evidence.evidence, name="evidence"),
    path("portal/<str:tenant>/evidence/public-key/", evidence.public_key, name="evidence_key"),
    path("portal/<str:tenant>/evidence/verifier/", evidence.check, name="evidence_verifier"),
    path("portal/<str:tenant>/evidence/<str:public_id>/", evidence.document, name="evidence_document"),
    path("portal/<str:tenant>/evidence/<str:public_id>/download/", evidence.download, name="evidence_download"),
    path("portal/<str:tenant>/activity/", activity.activity, name="activity"),
    path("portal/<str:tenant>/activity/export/<str:form>/", activity.export, name="activity_export"),
    path("portal/<str:tenant>/settings/", settings.settings, name="settings"),
    path("portal/<str:tenant>/settings/webhooks/", settings.endpoints, name="settings_webhooks"),
    path("portal/<str:tenant>/settings/people/<str:public_id>/role/", settings.person_role, name="person_role"),
    path("portal/<str:tenant>/settings/people/<str:public_id>/remove/", settings.person_remove, name="person_remove"),
    path("portal/<str:tenant>/settings/tokens/<str:key>/revoke/", settings.token_revoke, name="settings_token_revoke"),
    path("requests/", decisions.requests, name="operator_requests"),
    path("requests/offer/", decisions.offer, name="operator_offer"),
    path("requests/<str:public_id>/", decisions.request_page, name="operator_request"),
    path("requests/<str:public_id>/approve/", decisions.approve, name="operator_approve"),
    path("requests/<str:public_id>/decline/", decisions.decline, name="operator_decline"),
    path("requests/<str:public_id>/reopen/", decisions.reopen, name="operator_reopen"),
    path("requests/<str:public_id>/comment/", decisions.comment, name="operator_comment"),
]
