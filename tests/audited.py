"""Which tables may change only with an event in the same transaction, as data: all of ours, less what stands here.

`EXEMPT` are tables, `EXEMPT_COLUMNS` columns of an audited table whose change alone is no change of the product's
state; "insert" and "delete" among them stand for a new row and a removed one. Each has its reason.
`tests/trail_watch.py` holds the suite to it.
"""

EXEMPT = {
    "audit_event": "the trail itself",
    "people_idempotencykey": "what a program was answered, so that a retry is not done twice; what it did is recorded",
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
    "inventory_historyentry": "what reports and looks said over time, for the server's page; it is pruned",
    "partitions_stagingaction": "how to take back what was staged; staging, discarding and undoing are recorded",
    "partitions_linkloss": "what looks saw of the links of servers between two tenants; the cleaning is recorded",
    "probes_proberun": "a measurement; incidents, leaks and requests are recorded",
    "probes_probepair": "a measurement's place in its series",
    "probes_probeday": "measurements, rolled up",
    "probes_rolloutcomparison": "measurements around a rollout, which is recorded",
    "portal_rolloutpart": "an index over rollouts and revisions, which are recorded",
    "webhooks_delivery": "a message on its way; endpoints, and that one was given up, are recorded",
    "probes_isolationcheck": "a measurement; leaks and requests are recorded",
}
EXEMPT_COLUMNS = {
    "people_user": ({"last_login"}, "set by Django at a login, which is recorded"),
    "deploy_rollout": (
        {
            "cause",
            "tries",
            "next_try_at",
            "claimed_by",
            "claimed_until",
            "claimed_until_up",
            # which process of OpenSM the barrier waits for, so that the next worker waits for the same one
            "mark",
            # claimed alone only to place a file that is owed: nothing happens by the claim; later events have it
            "generation",
            # alone only while a rollout stays UNPROVEN: what was read again; the end of it has the counts
            "read_back",
            # alone only when a put-back takes a look of its own before it compares: a reading
            "before_id",
            # why a rollout waits to be taken back, in words; that it was is recorded
            "not_rolled_back",
        },
        "the lease, and what it waits for; transitions are recorded",
    ),
    "deploy_watch": (
        {
            "insert",
            "next_at",
            "asked_at",
            "claimed_by",
            "claimed_until",
            "checked_at",
            "failure",
            "managers",
            "census",
            "posture",
            "master",
            "list_mtime_ns",
            "scan_after",
            "round_began_at",
            "covered_at",
            "ports",
            "full_wanted",
            "full_at",
            "restored_at",
        },
        "what the watch saw last and when it looks again; drift, and whether a restore is allowed, are recorded",
    ),
    "deploy_drift": (
        {
            "insert",
            "delete",
            "details",
            "cause",
            "facts",
            "sightings",
            "missed",
            "last_seen_at",
            "adopted_digest",
            "adopted_at",
        },
        "a first sighting that nobody was told of, and what is known anew of a row; opened and closed are recorded",
    ),
    "deploy_qualification": ({"state", "began_at"}, "a worker has taken the request up; the report is recorded"),
    "deploy_hostcheck": (
        {"state", "began_at", "finished_at", "failure", "facts"},
        "what a host said of itself; that somebody asked is recorded",
    ),
    "portal_turn": ({"next_try_at", "why", "until", "told"}, "what a turn waits for; its steps are recorded"),
    "inventory_subnet": ({"looked_at"}, "when the fabric was last read"),
    # A number that only grows. The claim itself changes nothing on a host: whatever is placed under it has its event,
    # which names the number; a restore claims in the transaction of its event, and so does a start.
    "deploy_fence": ({"generation"}, "claimed before a placing, and recorded with the transition that follows"),
    "inventory_server": ({"reported_at"}, "a report that says nothing new"),
    "inventory_port": (
        {
            "seen_at",
            "seen_node_guid",
            "seen_lid",
            "seen_sm_lid",
            "seen_state",
            "seen_description",
            "home_leaf_guid",
            "home_leaf_port",
            "testimony",
            "points",
            "state",
            "phys_state",
            "rate_text",
            "rate_gbps",
            "lid",
            "sm_lid",
            "subnet_prefix",
            # Follows from what has an event: in the transaction of a settled board, of a cleaned server or a replaced
            # card; alone only from a rollout that ended RESTORED or STUCK (its event names the revision, and the
            # revision the tenants). partitions/mirror.py works it out again from those rows at each catch-up.
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
