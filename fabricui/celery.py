"""The Celery app: which task goes to which queue, and what runs when, on one screen.

Queue `rollout` and queue `observe` are served by the one account that may reach manager hosts; queue `probe`
by the one that may reach probe hosts, with another key; `webhooks` reaches what people named as endpoints, and may wait
for it; `housekeeping` reaches the database and waits for nobody.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "fabricui.settings")

app = Celery("fabricui")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,  # a worker that dies gives its task back; every task is safe to run twice
    worker_prefetch_multiplier=1,
    task_default_queue="housekeeping",
    task_routes={
        "deploy.tasks.run_rollout": {"queue": "rollout"},
        "deploy.tasks.observe": {"queue": "observe"},
        "deploy.tasks.watch": {"queue": "observe"},
        "deploy.tasks.qualify": {"queue": "observe"},
        "deploy.tasks.check_host": {"queue": "observe"},
        "probes.tasks.run": {"queue": "probe"},
        "probes.tasks.attempt": {"queue": "probe"},
        "probes.tasks.ask_for_paths": {"queue": "observe"},
        "webhooks.tasks.deliver": {"queue": "webhooks"},
    },
    broker_connection_retry_on_startup=True,
    worker_hijack_root_logger=False,
    beat_schedule={
        "look again at unfinished rollouts": {"task": "deploy.tasks.tick", "schedule": 5.0},
        "watch files, SMs and tables": {"task": "deploy.tasks.watch_tick", "schedule": 5.0},
        "take tenants' moves further": {"task": "portal.tasks.tick", "schedule": 2.0},
        "sign evidence for tenants": {"task": "portal.tasks.sign_evidence", "schedule": 5.0},
        "hand events to followers": {"task": "audit.tasks.follow", "schedule": 5.0},
        "sign and anchor the trail": {"task": "audit.tasks.every_minute", "schedule": 60.0},
        "check the whole trail": {"task": "audit.tasks.every_hour", "schedule": 3600.0},
        "queue and begin probes": {"task": "probes.tasks.tick", "schedule": 5.0},
        "check isolation": {"task": "probes.tasks.check_isolation", "schedule": 10.0},
        "send what is due to webhooks": {
            "task": "webhooks.tasks.deliver",
            "schedule": 5.0,
            "options": {"expires": 10},  # a round takes longer
        },
        "forget old messages": {"task": "webhooks.tasks.forget_old", "schedule": 3600.0},
        "roll up old probes": {"task": "probes.tasks.roll_up", "schedule": 3600.0},
    },
)
app.autodiscover_tasks()

# Both listen to Celery's signals: that a worker lives, and which request a task finishes.
from fabricui import heartbeat as heartbeat  # noqa: E402
