from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mq_reports", "0005_who_got_a_mail"),
    ]

    operations = [
        migrations.AddField(
            model_name="dayreport",
            name="late_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
