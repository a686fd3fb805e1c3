"""Evidence: several models, standard tasks, named peers at their best, and data that nothing was fitted on."""
