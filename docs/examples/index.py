# --8<-- [start:weights]
import numpy as np

import mha

np.set_printoptions(precision=3, suppress=True)

X = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 1.0, 0.0],
        [1.0, 0.0, 0.0, 1.0, 0.0, 0.0],
    ]
)  # (T, d_model)

eye = np.eye(6)
p = mha.Projections(eye, eye, eye, eye)
output, A = mha.multi_head_attention(X, projections=p, num_heads=2)
print(A)  # (H, T, T)
# --8<-- [end:weights]


# --8<-- [start:parity]
import torch

torch.manual_seed(0)
reference = torch.nn.MultiheadAttention(
    6, 2, batch_first=True, dtype=torch.float64
)
with torch.no_grad():
    reference.in_proj_bias.normal_()
    reference.out_proj.bias.normal_()

layer = mha.MultiHeadAttention.from_torch(reference)
report = mha.parity(layer, reference)
assert report, str(report)

errors = {row.name: row.max_error for row in report.rows}
print(f"max_error {max(errors.values()):.1e} {report.ok}")
# --8<-- [end:parity]
