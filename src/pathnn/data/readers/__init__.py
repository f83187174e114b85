"""Read files of users: tables of SMILES, graph6, TU folders, networkx graphs."""
