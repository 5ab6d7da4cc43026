"""The room's pages."""

from django.urls import path

from probes.views import export, incidents, isolation, matrix, metrics, pair, runs, scopes, settings

app_name = "probes"
urlpatterns = [
    path("", scopes.overview, name="overview"),
    path("partitions/<str:public_id>/", scopes.begin, name="begin"),
    path("tenants/<str:public_id>/consent/", scopes.consent, name="consent"),
    path("scopes/<str:public_id>/", matrix.scope, name="scope"),
    path("scopes/<str:public_id>/now/", scopes.now, name="now"),
    path("scopes/<str:public_id>/settings/", settings.settings, name="settings"),
    path("scopes/<str:public_id>/runs.<str:form>", export.export, name="export"),
    path("scopes/<str:public_id>/servers/<str:host_id>/", matrix.server, name="server"),
    path("scopes/<str:public_id>/pairs/<str:sender_id>/<str:target_id>/", pair.series, name="series"),
    path("runs/<str:public_id>/", runs.run, name="run"),
    path("rollouts/<str:public_id>/", runs.around_rollout, name="around_rollout"),
    path("isolation/", isolation.isolation, name="isolation"),
    path("isolation/now/", isolation.check_now, name="isolation_now"),
    path("isolation/<str:public_id>/", isolation.check, name="isolation_check"),
    path("incidents/", incidents.incidents, name="incidents"),
    path("incidents/<str:public_id>/acknowledge/", incidents.acknowledge, name="acknowledge"),
    path("metrics", metrics.metrics, name="metrics"),
]
