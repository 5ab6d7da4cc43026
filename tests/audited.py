"""Which tables may change only with an event in the same transaction, as data: all of ours, less what stands here.

`EXEMPT` are tables, `EXEMPT_COLUMNS` columns of an audited table whose change alone is no change of the product's
state. Each has its reason. `tests/trail_watch.py` holds the suite to it.
"""

EXEMPT = {
    "audit_event": "the trail itself",
    "audit_chainhead": "the trail itself",
    "audit_seal": "a signature under the trail; it is anchored outside",
    "audit_trailcheck": "what a check found; a break is an event of its own",
    "audit_followercursor": "how far a follower has read; its work is recorded by itself",
    "deploy_storedtables": "readings, stored by content; what follows from one is recorded",
    "deploy_storedfile": "readings, stored by content; what follows from one is recorded",
    "deploy_tablechanges": "an index over readings",
    "deploy_observation": "a look at the fabric; a person's request and a failure are recorded, routine looks are not",
    "deploy_rolloutstep": "the story of a rollout in words; its transitions are recorded",
    "deploy_hostoutcome": "how far a rollout has come on a host; its transitions are recorded",
    "probes_proberun": "a measurement; incidents, leaks and requests are recorded",
    "probes_probepair": "a measurement's place in its series",
    "probes_probeday": "measurements, rolled up",
    "probes_rolloutcomparison": "measurements around a rollout, which is recorded",
    "probes_isolationcheck": "a measurement; leaks and requests are recorded",
}
EXEMPT_COLUMNS = {
    "people_user": ({"last_login"}, "set by Django at a login, which is recorded"),
    "deploy_rollout": (
        {"cause", "tries", "next_try_at", "claimed_by", "claimed_until", "mark", "generation", "read_back", "after_id"},
        "the lease, and what it waits for; transitions are recorded",
    ),
    "deploy_fence": ({"generation"}, "claimed before a placing, and recorded with the transition that follows"),
    "inventory_server": ({"reported_at"}, "a report that says nothing new"),
    "inventory_port": (
        {
            "seen_at",
            "state",
            "phys_state",
            "rate_text",
            "rate_gbps",
            "lid",
            "sm_lid",
            "subnet_prefix",
            "former_tenant_id",
        },
        "what a reading, a report or a rollout says of a known port; new ports, cabling and owners are recorded",
    ),
    "probes_incident": (
        {"seen_at", "times", "recovered_at", "run_id", "leak_id", "sentence"},
        "an incident that is seen again, or is good again; it is recorded when it opens and when it is acknowledged",
    ),
    "probes_probescope": ({"next_at", "position", "rail"}, "how far the schedule has come"),
    "probes_probehost": ({"busy_until"}, "a host that is busy is asked later"),
}
