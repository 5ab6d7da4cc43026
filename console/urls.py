"""The operator's pages."""

from django.urls import path

from console.views import adoption, audit, board, home, managers, partitions, plan, rollouts, servers

app_name = "console"
urlpatterns = [
    path("", home.home, name="home"),
    path("board/", board.board, name="board"),
    path("board/move/", board.move, name="board_move"),
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
    path("ports/<str:guid>/confirm/", servers.confirm_port, name="port_confirm"),
    path("conflicts/<int:pk>/reject/", servers.reject_claim, name="conflict_reject"),
    path("managers/", managers.managers, name="managers"),
    path("managers/look/", managers.look, name="managers_look"),
    path("subnets/<str:public_id>/adoption/", adoption.page, name="adoption"),
    path("subnets/<str:public_id>/adoption/look/", adoption.look, name="adoption_look"),
    path("subnets/<str:public_id>/adoption/adopt/", adoption.adopt, name="adoption_adopt"),
    path("subnets/<str:public_id>/adoption/place/", adoption.place, name="adoption_place"),
    path("subnets/<str:public_id>/adoption/default/", adoption.close_default, name="adoption_default"),
    path("partitions/", partitions.partitions, name="partitions"),
    path("audit/", audit.events, name="audit"),
]
