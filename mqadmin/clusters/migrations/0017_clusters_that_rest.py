from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0016_brokers_that_told_their_topics"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="resting_since",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
