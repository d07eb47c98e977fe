"""Reinforcement learning on finite Markov decision processes, with exact fixed points and limit covariances."""
