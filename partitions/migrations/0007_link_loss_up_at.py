from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("partitions", "0006_link_loss")]

    operations = [
        migrations.AddField(model_name="linkloss", name="up_at", field=models.DateTimeField(null=True)),
    ]
