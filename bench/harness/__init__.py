"""What bench/run is made of. bench/README.md says what is measured and how; `cases.py` lists it."""
