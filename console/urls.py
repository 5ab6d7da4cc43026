"""The operator's pages."""

from django.urls import path

from console.views import adoption, audit, board, drift, home, managers, partition, partitions, plan, rollouts, servers

app_name = "console"
urlpatterns = [
    path("", home.home, name="home"),
    path("board/", board.board, name="board"),
    path("board/move/", board.move, name="board_move"),
    path("board/membership/", board.membership, name="board_membership"),
    path("board/discard/", board.discard, name="board_discard"),
    path("plan/", plan.plan, name="plan"),
    path("plan/look/", plan.look, name="plan_look"),
    path("rollouts/", rollouts.rollouts, name="rollouts"),
    path("rollouts/<str:public_id>/", rollouts.rollout, name="rollout"),
    path("rollouts/<str:public_id>/cancel/", rollouts.cancel, name="rollout_cancel"),
    path("rollouts/<str:public_id>/check/", rollouts.check_again, name="rollout_check"),
    path("rollouts/<str:public_id>/release/", rollouts.release, name="rollout_release"),
    path("servers/", servers.servers, name="servers"),
    path("servers/<str:public_id>/", servers.server, name="server"),
    path("servers/<str:public_id>/clean/", servers.mark_clean, name="server_clean"),
    path("ports/<str:guid>/confirm/", servers.confirm_port, name="port_confirm"),
    path("conflicts/<int:pk>/reject/", servers.reject_claim, name="conflict_reject"),
    path("managers/", managers.managers, name="managers"),
    path("managers/look/", managers.look, name="managers_look"),
    path("subnets/<str:public_id>/adoption/", adoption.page, name="adoption"),
    path("subnets/<str:public_id>/adoption/look/", adoption.look, name="adoption_look"),
    path("subnets/<str:public_id>/adoption/adopt/", adoption.adopt, name="adoption_adopt"),
    path("subnets/<str:public_id>/adoption/place/", adoption.place, name="adoption_place"),
    path("subnets/<str:public_id>/adoption/default/", adoption.close_default, name="adoption_default"),
    path("drift/", drift.drift, name="drift"),
    path("drift/put-back/", drift.put_back, name="drift_put_back"),
    path("drift/look/", drift.look, name="drift_look"),
    path("drift/restoring/", drift.restoring, name="drift_restoring"),
    path("drift/<str:public_id>/", drift.difference, name="difference"),
    path("drift/<str:public_id>/adopt/", drift.adopt, name="drift_adopt"),
    path("partitions/", partitions.partitions, name="partitions"),
    path("partitions/<str:public_id>/", partition.partition, name="partition"),
    path("partitions/<str:public_id>/rename/", partition.rename, name="partition_rename"),
    path("partitions/<str:public_id>/retire/", partition.retire, name="partition_retire"),
    path("audit/", audit.events, name="audit"),
]
