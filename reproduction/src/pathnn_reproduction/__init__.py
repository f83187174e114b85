"""The paper, one file per table or figure."""
