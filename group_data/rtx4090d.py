"""What is declared for boxes with an RTX 4090 D of 48 GB."""

gpu = {
    "name": "NVIDIA GeForce RTX 4090 D",
    "sm_count": 114,  # the 4090 has 128
    "memory_mib": 49_140,
    "minimum_driver": "616.56",  # proven with CUDA 13.3
    "display": True,  # these cards drive a desktop as well
}

engine = {
    "sm_count": 114,  # 112 CTAs of the decode grid then are 0.98 of a wave
    "parallel_jobs": 24,  # nvcc takes 2 to 4 GiB a job
}

serve = {
    "kv_dtype": "rk4v4-e8",  # 4-bit E8 lattice, 98.7 % fidelity; steadier in code and mathematics than 2-bit
    "kv_capacity": "auto",  # grows to context x lanes = 524,288 tokens, 11.7 GiB
    "max_concurrency": 4,  # with 128K context this is what lifts the pool to 524,288 tokens
    "draft_tokens": 7,  # best for one stream; 8 and 9 end the server
}
