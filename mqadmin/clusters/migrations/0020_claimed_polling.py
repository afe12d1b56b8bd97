from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0019_members_that_say_how_they_consume"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="poll_offered_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="cluster",
            name="poll_claimed_until",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
