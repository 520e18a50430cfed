"""The claims engine. Import what a claim needs from ``marginlab.proofs_check``."""
