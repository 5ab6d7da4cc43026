"""Let the database refuse to change a revision."""

from django.db import migrations

from deploy import triggers


class Migration(migrations.Migration):
    dependencies = [("deploy", "0001_initial")]

    operations = [
        migrations.RunPython(
            lambda apps, schema_editor: triggers.create(schema_editor.connection),
            lambda apps, schema_editor: triggers.drop(schema_editor.connection),
        )
    ]
