"""Everything that can be recorded: a closed list, so that nobody invents a word for something that has one.

To add one: a line here, a row in docs/audit.md, a call of `record()` in the operation, a test.
"""

from enum import StrEnum
from typing import Self


class Action(StrEnum):
    """`room:subject:verb`, and the words in which the page tells it: "Olga *staged a change of* srv-001"."""

    words: str

    def __new__(cls, value: str, words: str) -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words
        return member

    @classmethod
    def of_rollout(cls, state: str) -> "Action":
        """Give the action that tells of a rollout's move into `state` (deploy.models.Rollout.State)."""
        return cls[f"ROLLOUT_{state}"]

    @property
    def room(self) -> str:
        """The room whose change it is."""
        return self.value.partition(":")[0]

    # audit
    CLOCK_STEP = "audit:clock:step", "noticed that the clock went back:"
    KEY_ROTATE = "audit:key:rotate", "began a new key of the trail:"
    TRAIL_BROKEN = "audit:trail:broken", "found that the trail is not as it was written:"
    TRAIL_EXPORT = "audit:trail:export", "exported"
    TRAIL_RESTORED = "audit:trail:restored", "told that the database was restored from a backup:"
    EVIDENCE_READ = "audit:evidence:read", "looked at the evidence of"

    # people
    PERSON_CREATE = "people:person:create", "created"
    PERSON_LOCK = "people:person:lock", "locked the account of"
    PERSON_LOGIN = "people:person:login", "signed in"
    PERSON_LOGIN_FAILED = "people:person:login-failed", "failed to sign in"
    PERSON_LOGIN_REFUSED = "people:person:login-refused", "was refused after too many attempts to sign in"
    PERSON_LOGOUT = "people:person:logout", "signed out"
    PERSON_PASSWORD = "people:person:password", "changed the password of"
    PERSON_REAUTHENTICATE = "people:person:reauthenticate", "showed again to be"
    PERSON_ROLE = "people:person:role", "changed the role of"
    PERSON_THEME = "people:person:theme", "changed the colours of"
    PERSON_LANGUAGE = "people:person:language", "changed the language of"
    PERSON_TIME_ZONE = "people:person:time-zone", "changed the time zone of"
    ROLE_GIVE = "people:role:give", "gave a role to"
    ROLE_TAKE = "people:role:take", "took a role from"
    PERSON_UNLOCK = "people:person:unlock", "unlocked the account of"
    SECOND_FACTOR_ADD = "people:second-factor:add", "set up the second factor of"
    SECOND_FACTOR_CODES = "people:second-factor:codes", "made new recovery codes of"
    SECOND_FACTOR_REMOVE = "people:second-factor:remove", "removed the second factor of"
    SESSION_END = "people:session:end", "ended sessions of"
    TENANT_CREATE = "people:tenant:create", "created tenant"
    TENANT_EMPTY = "partitions:tenant:empty", "staged that everything is taken from tenant"
    TENANT_OFFBOARD = "people:tenant:offboard", "let go of tenant"
    TENANT_RESUME = "people:tenant:resume", "let in again the people of tenant"
    TENANT_SUSPEND = "people:tenant:suspend", "suspended tenant"
    TENANT_POLICY = "people:tenant:policy", "changed what may be done alone by tenant"
    TOKEN_CREATE = "people:token:create", "created an API token of"
    TOKEN_USE = "people:token:use", "used the API token"
    TOKEN_REFUSED = "people:token:refused", "was refused with the API token"
    TOKEN_REVOKE = "people:token:revoke", "revoked an API token of"

    # inventory
    SUBNET_CREATE = "inventory:subnet:create", "created subnet"
    SUBNET_MODE = "inventory:subnet:mode", "changed the mode of subnet"
    SUBNET_FREEZE = "inventory:subnet:freeze", "froze subnet"
    SUBNET_UNFREEZE = "inventory:subnet:unfreeze", "unfroze subnet"
    MANAGER_HOST_ENROL = "inventory:manager-host:enrol", "enrolled manager host"
    MANAGER_HOST_CHANGE = "inventory:manager-host:change", "changed manager host"
    MANAGER_HOST_RETIRE = "inventory:manager-host:retire", "retired manager host"
    ENROLMENT_TOKEN_CREATE = "inventory:enrolment-token:create", "created enrolment token"
    ENROLMENT_TOKEN_REVOKE = "inventory:enrolment-token:revoke", "revoked enrolment token"
    ENROLMENT_REFUSED = "inventory:server:enrol-refused", "was refused enrolment"
    SERVER_ENROL = "inventory:server:enrol", "enrolled server"
    SERVER_REGISTER = "inventory:server:register", "registered server"
    SERVER_REPORT_CHANGED = "inventory:server:report-changed", "reported something new about server"
    SERVER_REPORT_REFUSED = "inventory:server:report-refused", "sent a report that was refused, about"
    SERVER_CREDENTIAL_REVOKE = "inventory:server:credential-revoke", "revoked the credential of server"
    SERVER_CREDENTIAL_ROTATE = "inventory:server:credential-rotate", "rotated the credential of server"
    SERVER_CREDENTIAL_ASK = "inventory:server:credential-ask", "asked for a rotated credential of server"
    PORT_SEEN = "inventory:port:seen", "saw unregistered ports or new cabling on"
    PORT_IMPORT = "inventory:port:import", "imported a listing of ports into subnet"
    PORT_CONFIRM = "inventory:port:confirm", "confirmed port"
    PORT_WITNESS = "inventory:port:witness", "confirmed by both witnesses ports of"
    PORT_CONFLICT = "inventory:port:conflict", "claims a port of another server:"
    SERVER_LABEL = "inventory:server:label", "labelled server"
    PORT_CONFLICT_DECIDE = "inventory:port:conflict-decide", "decided a conflict about port"

    # partitions
    PARTITION_CREATE = "partitions:partition:create", "created partition"
    PARTITION_ADOPT = "partitions:partition:adopt", "took over partition"
    PARTITION_RENAME = "partitions:partition:rename", "renamed partition"
    PARTITION_RETIRE = "partitions:partition:retire", "retired partition"
    PARTITION_EMPTY = "partitions:partition:empty", "staged that everybody leaves partition"
    DEFAULT_STAGE = "partitions:default:stage", "staged a change of Default on subnet"
    DEFAULT_DISCARD = "partitions:default:discard", "discarded a staged change of Default on subnet"
    MEMBER_STAGE = "partitions:member:stage", "staged a change of"
    MEMBER_DISCARD = "partitions:member:discard", "discarded a staged change of"
    MEMBER_UNDO = "partitions:member:undo", "took back what was staged last for"
    HCA_REPLACE = "partitions:hca:replace", "replaced an HCA of"
    HCA_REPLACE_UNDO = "partitions:hca:replace-undo", "took back the replacement of an HCA of"
    BACK_TO_STAGE = "partitions:subnet:stage-as-of", "staged that everything goes back to how it was, on subnet"
    SERVER_CLEAN = "partitions:server:clean", "marked as clean server"
    DRIFT_ADOPT = "partitions:drift:adopt", "staged what was found, by"
    SERVER_CLEAN_REFUSED = "partitions:server:clean-refused", "was refused when marking as clean server"
    MEMBER_SETTLE = "partitions:member:settle", "brought the board up to"

    # portal
    REQUEST_ASK = "portal:request:ask", "asked for"
    REQUEST_COMMENT = "portal:request:comment", "commented on the request for"
    REQUEST_WITHDRAW = "portal:request:withdraw", "withdrew the request for"
    REQUEST_APPROVE = "portal:request:approve", "approved the request for"
    REQUEST_DECLINE = "portal:request:decline", "declined the request for"
    REQUEST_REOPEN = "portal:request:reopen", "opened again the request for"
    REQUEST_DONE = "portal:request:done", "saw on the fabric the end of the request for"
    STORAGE_OFFER = "portal:storage:offer", "offered to tenants the storage"
    STORAGE_KEEP = "portal:storage:keep", "offers to tenants no more the storage"
    EVIDENCE_ASK = "portal:evidence:ask", "asked for signed evidence of"
    EVIDENCE_SIGN = "portal:evidence:sign", "signed the evidence"
    EVIDENCE_GIVE_UP = "portal:evidence:give-up", "could not sign the evidence"
    TURN_ASK = "portal:turn:ask", "began to gather"
    TURN_BEGIN = "portal:turn:begin", "rolls out by itself"
    TURN_END = "portal:turn:end", "is done with"

    # deploy
    REVISION_ADOPT = "deploy:revision:adopt", "adopted the hand-written files as"
    REVISION_PROPOSE = "deploy:revision:propose", "proposed"
    ROLLOUT_START = "deploy:rollout:start", "started"
    ROLLOUT_CHECK_AGAIN = "deploy:rollout:check-again", "asked to check again"
    ROLLOUT_CONFIRM = "deploy:rollout:confirm", "confirmed"
    ROLLOUT_ROLL_BACK = "deploy:rollout:roll-back", "began to take back, because nobody had confirmed it,"
    ROLLOUT_ACCEPT = "deploy:rollout:accept", "accepted what had moved beside"
    GENERATION_RAISE = "deploy:generation:raise", "raised the fencing generation of subnet"
    ROLLOUT_RELEASE = "deploy:rollout:release", "let go of the subnet after"
    ROLLOUT_STAGING = "deploy:rollout:staging", "began staging"
    ROLLOUT_PLACING = "deploy:rollout:placing", "began placing"
    ROLLOUT_RELOADING = "deploy:rollout:reloading", "began reloading"
    ROLLOUT_READING_BACK = "deploy:rollout:reading-back", "began reading back"
    ROLLOUT_RESTORING = "deploy:rollout:restoring", "began restoring the parent in"
    ROLLOUT_PROVEN = "deploy:rollout:proven", "proved"
    ROLLOUT_REFUSED = "deploy:rollout:refused", "refused, with nothing placed,"
    ROLLOUT_CANCELLED = "deploy:rollout:cancelled", "called off"
    ROLLOUT_RESTORED = "deploy:rollout:restored", "restored the parent in"
    ROLLOUT_UNPROVEN = "deploy:rollout:unproven", "placed but could not prove"
    ROLLOUT_DEGRADED = "deploy:rollout:degraded", "proved, with a manager host owed,"
    ROLLOUT_STUCK = "deploy:rollout:stuck", "needs a person for"
    DRIFT_OPEN = "deploy:drift:open", "found drift,"
    DRIFT_CLOSE = "deploy:drift:close", "saw the end of drift,"
    DRIFT_RESTORING = "deploy:drift:restoring", "changed whether a lost isolation is mended alone on subnet"
    QUALIFICATION_REQUEST = "deploy:qualification:request", "asked for a"
    QUALIFICATION_REPORT = "deploy:qualification:report", "stored the report of a"
    QUALIFICATION_SIGN = "deploy:qualification:sign", "signed the"
    HOST_CHECK_REQUEST = "deploy:host-check:request", "asked what is missing on manager host"
    MANAGER_KEY_ROTATE = "deploy:manager-key:rotate", "changed the key for the manager hosts:"
    OBSERVATION_REQUEST = "deploy:observation:request", "asked for a look at"
    OBSERVATION_FAILED = "deploy:observation:failed", "could not look at"

    # probes
    PROBE_HOST_ADD = "probes:host:add", "added probe host"
    PROBE_HOST_CHANGE = "probes:host:change", "changed probe host"
    PROBE_HOST_WITHDRAW = "probes:host:withdraw", "withdrew probe host"
    PROBE_SET_CREATE = "probes:probe-set:create", "created probe set"
    PROBE_SET_MEMBER = "probes:probe-set:member", "changed the members of probe set"
    PROBE_SETTINGS = "probes:scope:settings", "changed the probes of"
    PROBE_CONSENT = "probes:tenant:consent", "changed the consent to probes of"
    PROBE_NOW = "probes:scope:run-now", "asked for probes now in"
    PROBE_INCIDENT_OPEN = "probes:incident:open", "found a probe incident on"
    ISOLATION_LEAK = "probes:isolation:leak", "found that tenants can reach each other:"
    ISOLATION_NOW = "probes:isolation:check-now", "asked for checks of isolation now in"
    PROBE_INCIDENT_ACKNOWLEDGE = "probes:incident:acknowledge", "acknowledged a probe incident on"

    # webhooks
    WEBHOOK_CREATE = "webhooks:endpoint:create", "created webhook"
    WEBHOOK_GIVE_UP = "webhooks:endpoint:give-up", "gave up webhook"
    WEBHOOK_OFF = "webhooks:endpoint:switch-off", "switched off webhook"
    WEBHOOK_ON = "webhooks:endpoint:switch-on", "switched on webhook"
    WEBHOOK_REMOVE = "webhooks:endpoint:remove", "removed webhook"
    WEBHOOK_SECRET = "webhooks:endpoint:secret", "renewed the secret of webhook"
    WEBHOOK_TEST = "webhooks:endpoint:test", "sent a test to webhook"
