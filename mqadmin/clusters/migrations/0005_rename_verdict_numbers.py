"""Names the numbers behind a verdict as the code does."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("mq_clusters", "0004_explicit_verdict_ranks")]

    operations = [migrations.RenameField("group", "verdict_facts", "verdict_numbers")]
