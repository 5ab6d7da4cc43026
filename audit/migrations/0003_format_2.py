"""Format 2 of the chain: address, links, key and code; the seals; what the checks found.

Events that are there keep format 1 and their hashes. Triggers go first and come back last: on SQLite a new column
makes the table anew, and a table made anew has none.
"""

from django.db import migrations, models

from audit import triggers


def drop(apps, schema_editor):
    triggers.drop(schema_editor.connection)


def create(apps, schema_editor):
    triggers.create(schema_editor.connection)


def create_format_2(apps, schema_editor):
    triggers.create_format_2(schema_editor.connection)


def drop_format_2(apps, schema_editor):
    triggers.drop_format_2(schema_editor.connection)


class Migration(migrations.Migration):
    dependencies = [("audit", "0002_append_only")]

    operations = [
        migrations.RunPython(drop, create),
        migrations.CreateModel(
            name='Seal',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField()),
                ('hash', models.CharField(max_length=64)),
                ('event_at', models.DateTimeField()),
                ('sealed_at', models.DateTimeField()),
                ('key', models.CharField(max_length=16)),
                ('signature', models.CharField(max_length=128)),
            ],
        ),
        migrations.CreateModel(
            name='TrailCheck',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('whole', 'the whole trail'), ('newest', 'the events since the last seal'), ('anchor', 'sealing and anchoring')], max_length=10, unique=True)),
                ('checked_at', models.DateTimeField()),
                ('events', models.PositiveBigIntegerField(default=0)),
                ('broken_at', models.PositiveBigIntegerField(null=True)),
                ('trouble', models.CharField(blank=True, max_length=20)),
                ('sentence', models.TextField()),
                ('anchored_to', models.PositiveBigIntegerField(default=0)),
            ],
        ),
        migrations.AddField(
            model_name='chainhead',
            name='at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='chainhead',
            name='key_version',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='event',
            name='address',
            field=models.CharField(blank=True, db_default='', default='', max_length=45),
        ),
        migrations.AddField(
            model_name='event',
            name='format',
            field=models.PositiveSmallIntegerField(db_default=1, default=2),
        ),
        migrations.AddField(
            model_name='event',
            name='key_version',
            field=models.PositiveIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name='event',
            name='mac',
            field=models.CharField(blank=True, db_default='', default='', max_length=64),
        ),
        migrations.AddField(
            model_name='event',
            name='revision_key',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
        migrations.AddField(
            model_name='event',
            name='rollout_key',
            field=models.CharField(blank=True, db_default='', default='', max_length=40),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['actor_name', '-number'], name='event_actor_name'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['subject_key', '-number'], name='event_subject_key'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['rollout_key', '-number'], name='event_rollout'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['revision_key', '-number'], name='event_revision'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['request_id', '-number'], name='event_request'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['at'], name='event_at'),
        ),
        migrations.AddIndex(
            model_name='seal',
            index=models.Index(fields=['-number'], name='seal_newest'),
        ),
        migrations.RunPython(create, drop),
        migrations.RunPython(create_format_2, drop_format_2),
    ]
