from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_clusters", "0017_clusters_that_rest"),
    ]

    operations = [
        migrations.AddField(
            model_name="cluster",
            name="unreadable_next",
            field=models.JSONField(blank=True, default=list),
        ),
    ]
