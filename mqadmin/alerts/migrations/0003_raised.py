from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_alerts", "0002_cluster_verdict"),
    ]

    operations = [
        migrations.AlterField(
            model_name="alertrule",
            name="about",
            field=models.CharField(
                choices=[
                    ("verdict", "verdict of a group"),
                    ("lag", "lag of a group, in messages"),
                    ("behind", "lag of a group, in seconds"),
                    ("objective", "objective of a group"),
                    ("drain", "time until a group’s lag is gone, in minutes"),
                    ("dead_letters", "new dead letters of a group"),
                    ("raised", "failures of a group that rules for dead letters raised"),
                    ("conflict", "subscriptions of a group’s members"),
                    ("scheduler", "lateness of a broker’s scheduler, in seconds"),
                    ("broker", "broker that does not answer"),
                    ("disk", "disk of a broker, in percent used"),
                    ("cluster", "cluster that cannot be reached"),
                    ("cluster_verdict", "verdict of a cluster"),
                ],
                max_length=20,
            ),
        ),
    ]
