"""Read users' data: tables of SMILES, graph6, TU folders, networkx graphs."""
