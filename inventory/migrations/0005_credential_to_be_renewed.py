from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('inventory', '0004_witnesses'),
    ]

    operations = [
        migrations.AddField(
            model_name='servercredential',
            name='is_to_be_renewed',
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
