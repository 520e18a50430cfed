"""marginlab."""
