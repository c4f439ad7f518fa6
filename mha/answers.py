"""What `mha.exercises` compares with: right answers, and mistakes worth a word. All are computed.

A mistake is computed by making it, so that its message can only name what was really done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .functions import (
    Projections,
    attention,
    merge_heads,
    multi_head_attention,
    softmax,
    split_heads,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class Mistake(NamedTuple):
    """A wrong answer, and what to say about it in each language."""

    compute: Callable[[], Any]
    id: str
    en: str


class Exercise:
    """How to compute the right answer, and mistakes that are often made.

    Where a function or class is asked for, `ask` gets from it what is compared.
    """

    def __init__(
        self,
        right: Callable[[], Any],
        *mistakes: Mistake,
        ask: Callable[[Any], Any] | None = None,
    ) -> None:
        self.right, self.mistakes, self.ask = right, mistakes, ask


# The chapter's three tokens: head 1 reads the word class, head 2 the topic.
CLASS, TOPIC = np.eye(3)[[0, 1, 0]], np.eye(3)[[1, 1, 0]]  # (T, d_k)
X = np.hstack([CLASS, TOPIC])  # (T, d_model)

# One row of scores, and what its query may attend to (True = may).
SCORES = np.array([2.0, 1.0, 0.0])
MIDDLE = np.array([False, True, False])
LARGE = np.array([1.0, 2.0, 4.0]) + 1000

# What the reader's functions and classes are tried on: two heads, lengths unlike widths.
_RNG = np.random.default_rng(0)
TOKENS = _RNG.normal(size=(4, 6))  # (T, d_model)
W_Q, W_K, W_V, W_O = _RNG.normal(size=(4, 6, 6))
LAYER = Projections(W_Q, W_K, W_V, W_O)
HEADS = _RNG.normal(size=(2, 4, 3))  # (H, T, d_v)
ORDER = np.array([2, 0, 3, 1])
NEAR = np.abs(np.subtract.outer(range(4), range(4))) <= 1  # (T, T), True = may attend
NEAR[0, 3] = True  # so that rows and columns differ


def row(x: Array, scale: float | None = None) -> Array:
    """The weights of token 0 in one head that reads x."""
    _, A = attention(x, x, x, scale=scale)  # (T, T)
    return np.asarray(A[0])


def overflowing_softmax() -> Array:
    """The formula as it stands in books, on large scores."""
    with np.errstate(all="ignore"):
        e = np.exp(LARGE)
        return np.asarray(e / e.sum())


def every_other(x: Array, num_heads: int = 2) -> Array:
    """Heads whose columns are interleaved: (T, d_model) to (H, T, d_k)."""
    return np.stack([x[:, h::num_heads] for h in range(num_heads)])


def by_reshape(x: Array, num_heads: int = 2) -> Array:
    """Heads that mix the rows of several tokens: (T, d_model) to (H, T, d_k)."""
    return x.reshape(num_heads, len(x), -1)


def layer(
    split: Callable[[Array, int], Array] = split_heads,
    weigh: Callable[[Array], Array] = softmax,
) -> Array:
    """The output of the layer that the classes are compared with, one part done differently."""
    q, k, v = (split(TOKENS @ w, 2) for w in (W_Q, W_K, W_V))  # (H, T, d_k)
    A = weigh(q @ k.swapaxes(-2, -1) / np.sqrt(3))  # (H, T, T)
    return np.asarray(merge_heads(A @ v) @ W_O)  # (T, d_model)


def normalise(axis: int | tuple[int, ...]) -> Callable[[Array], Array]:
    """A softmax that divides by the sum along another axis."""

    def weigh(scores: Array) -> Array:
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return np.asarray(e / e.sum(axis=axis, keepdims=True))

    return weigh


def weights(x: Array) -> Array:
    """Weights per head of the same layer."""
    return multi_head_attention(x, projections=LAYER, num_heads=2)[1]


def output(**masks: Any) -> Array:
    """What the layer gives with masks."""
    return multi_head_attention(TOKENS, projections=LAYER, num_heads=2, **masks)[0]


def causal() -> Array:
    """Which weights of four tokens are not zero under a causal mask."""
    return attention(TOKENS, TOKENS, TOKENS, causal=True)[1] > 0


def joined() -> Array:
    """Both heads side by side."""
    return np.hstack([HEADS[0], HEADS[1]])


def cross_weights() -> Array:
    """Weights of cross-attention: B = 2, H = 4, L = 5, S = 7."""
    query, key = np.zeros((2, 5, 8)), np.zeros((2, 7, 8))
    eye = Projections(*[np.eye(8)] * 4)
    return multi_head_attention(query, key, key, projections=eye, num_heads=4)[1]


UNSCALED = (
    "Skornya belum diskalakan: hasil kali titik masih harus dibagi akar d_k.",
    "The scores are not scaled: a dot product still has to be divided by the root of d_k.",
)
AS_GIVEN = (
    "Kelas ini masih memberi hasil yang persis sama dengan kelas semula.",
    "This class still gives exactly what the class gave at first.",
)
ZERO_SCORE = (
    "Skor nol bukan bobot nol: exp(0) sama dengan satu. Skor yang ditutup menjadi -inf.",
    "A score of zero is not a weight of zero: exp(0) is one. A blocked score becomes -inf.",
)
MASK_IGNORED = (
    "Mask-nya tidak dipakai: key yang ditutup pun mendapat bobot.",
    "The mask is not used: blocked keys get weight, too.",
)
UPSIDE_DOWN = (
    "Mask-nya terbalik: yang boleh diperhatikan malah ditutup. Di sini True berarti boleh.",
    "The mask is upside down: it blocks what may be attended to. Here True means may attend.",
)

EXERCISES = {
    "width": Exercise(
        lambda: split_heads(np.zeros((1, 512)), 8).shape[-1],
        Mistake(
            lambda: 512,
            "Itu d_model, lebar seluruh lapisan. Setiap head hanya mendapat bagiannya.",
            "That is d_model, the width of the whole layer. Each head gets only its share.",
        ),
        Mistake(
            lambda: 8,
            "Itu banyaknya head. Yang ditanyakan lebar satu head.",
            "That is the number of heads. The question is how wide one head is.",
        ),
        Mistake(
            lambda: 512 * 8,
            "Semua head berbagi lebar yang ada, bukan menambahnya: dibagi, bukan dikali.",
            "The heads share the width, they do not add to it: divide, do not multiply.",
        ),
    ),
    "scale": Exercise(
        lambda: 1 / np.sqrt(64),
        Mistake(
            lambda: 1 / 64,
            "Akarnya terlewat: skor dibagi akar d_k, bukan d_k.",
            "The root is missing: scores are divided by the square root of d_k, not by d_k.",
        ),
        Mistake(
            lambda: np.sqrt(64),
            "Terbalik: skor dibagi akar d_k, jadi faktornya kebalikan akar itu.",
            "Upside down: scores are divided by the root of d_k, so the factor is one over it.",
        ),
        Mistake(
            lambda: 1 / np.sqrt(512),
            "Itu akar d_model. Hasil kali titik di dalam satu head hanya menjumlahkan d_k suku.",
            "That is the root of d_model. A dot product inside one head sums only d_k terms.",
        ),
    ),
    "score": Exercise(
        lambda: X[0] @ X[2] / np.sqrt(6),
        Mistake(lambda: X[0] @ X[2], *UNSCALED),
        Mistake(
            lambda: X[0] @ X[2] / 6,
            "Akarnya terlewat: pembaginya akar d_k, bukan d_k.",
            "The root is missing: divide by the root of d_k, not by d_k.",
        ),
        Mistake(
            lambda: X[0] @ X[2] / np.sqrt(3),
            "Lebarnya keliru: head ini selebar penuh, jadi d_k sama dengan d_model.",
            "Wrong width: this head spans the full width, so d_k equals d_model.",
        ),
        Mistake(
            lambda: X[0] @ X[0] / np.sqrt(6),
            "Itu skor token 0 dengan dirinya sendiri.",
            "That is the score of token 0 with itself.",
        ),
    ),
    "tie": Exercise(
        lambda: row(X),
        Mistake(lambda: row(X, scale=1), *UNSCALED),
        Mistake(
            lambda: row(X, scale=1 / np.sqrt(3)),
            "Skalanya keliru: head ini selebar penuh, jadi d_k sama dengan d_model.",
            "Wrong scale: this head spans the full width, so d_k equals d_model.",
        ),
        Mistake(
            lambda: X[0] @ X.T / (X[0] @ X.T).sum(),
            "Eksponensialnya terlewat: softmax membagi exp(skor), bukan skornya sendiri.",
            "The exponential is missing: softmax divides exp(score), not the score itself.",
        ),
        Mistake(
            lambda: np.exp(X[0] @ X.T / np.sqrt(6)),
            "Belum dinormalkan: bagi dengan jumlahnya, supaya barisnya berjumlah satu.",
            "Not normalised yet: divide by the sum, so that the row sums to one.",
        ),
        Mistake(
            lambda: softmax(X @ X.T / np.sqrt(6), axis=0)[0],
            "Sumbunya keliru: ini dinormalkan per kolom. Yang harus berjumlah satu setiap baris.",
            "Wrong axis: this is normalised by columns. It is each row that has to sum to one.",
        ),
    ),
    "shift": Exercise(
        lambda: softmax(LARGE),
        Mistake(
            lambda: np.eye(3)[LARGE.argmax()],
            "Baris ini tidak menjadi lebih tajam: selisih antarskornya tetap sama.",
            "The row does not get sharper: the differences between the scores stay the same.",
        ),
        Mistake(
            lambda: np.full(3, 1 / 3),
            "Baris ini tidak menjadi rata: yang menentukan selisih skor, bukan perbandingannya.",
            "The row does not get flat: what counts is the scores' difference, not their ratio.",
        ),
        Mistake(
            overflowing_softmax,
            "exp meluap. Kurangi dulu semua skor dengan skor terbesar; bobotnya tidak berubah.",
            "exp overflows. Subtract the largest score from all first; the weights do not change.",
        ),
    ),
    "one_key": Exercise(
        lambda: softmax(np.where(MIDDLE, SCORES, -np.inf)),
        Mistake(lambda: softmax(SCORES), *MASK_IGNORED),
        Mistake(lambda: softmax(np.where(MIDDLE, -np.inf, SCORES)), *UPSIDE_DOWN),
        Mistake(
            lambda: softmax(SCORES * MIDDLE),
            *ZERO_SCORE,
        ),
        Mistake(
            lambda: softmax(SCORES) * MIDDLE,
            "Bobotnya baru ditutup sesudah softmax: barisnya tidak lagi berjumlah satu.",
            "The weights are blocked after the softmax: the row no longer sums to one.",
        ),
    ),
    "no_key": Exercise(
        lambda: softmax(np.full(3, -np.inf)),
        Mistake(
            lambda: np.full(3, np.nan),
            "Itu nol dibagi nol. Di mha, bobot query yang tidak boleh memperhatikan apa pun nol.",
            "That is zero divided by zero. In mha, a query that may attend to nothing has weights "
            "of zero.",
        ),
        Mistake(
            lambda: softmax(np.full(3, np.finfo(float).min)),
            "Itu hasil skor yang sangat rendah, tetapi berhingga. Yang ditutup harus berbobot nol.",
            "That is what very low but finite scores give. What is blocked has a weight of zero.",
        ),
        Mistake(lambda: softmax(SCORES), *MASK_IGNORED),
    ),
    "head_columns": Exercise(
        lambda: split_heads(np.arange(12)[None], 3)[1, 0],
        Mistake(
            lambda: split_heads(np.arange(12)[None], 3)[0, 0],
            "Itu kolom head pertama.",
            "Those are the columns of the first head.",
        ),
        Mistake(
            lambda: every_other(np.arange(12)[None], 3)[1, 0],
            "Kolomnya berselang-seling. Kolom satu head bersebelahan.",
            "These columns are interleaved. The columns of one head stand side by side.",
        ),
        Mistake(
            lambda: np.arange(12).reshape(4, 3)[1],
            "Lebarnya keliru: satu head mendapat d_model / H kolom, bukan H kolom.",
            "Wrong width: a head gets d_model / H columns, not H columns.",
        ),
    ),
    "second_head": Exercise(
        lambda: row(TOPIC),
        Mistake(
            lambda: row(CLASS),
            "Itu baris di head pertama, yang membaca kelas kata. Head kedua membaca topik.",
            "That is the row in the first head, which reads the word class. The second reads the "
            "topic.",
        ),
        Mistake(lambda: row(TOPIC, scale=1), *UNSCALED),
        Mistake(
            lambda: row(TOPIC, scale=1 / np.sqrt(6)),
            "Skalanya keliru: di dalam satu head, pembaginya akar d_k, bukan akar d_model.",
            "Wrong scale: inside one head, divide by the root of d_k, not of d_model.",
        ),
        Mistake(
            lambda: row(X),
            "Itu satu head selebar penuh. Head kedua hanya melihat tiga kolom terakhir.",
            "That is one head of full width. The second head sees only the last three columns.",
        ),
    ),
    "mean": Exercise(
        lambda: (row(CLASS) + row(TOPIC)) / 2,
        Mistake(
            lambda: row(CLASS) + row(TOPIC),
            "Itu jumlahnya. Rata-ratanya masih harus dibagi banyaknya head.",
            "That is the sum. For the mean, divide by the number of heads.",
        ),
        Mistake(
            lambda: row(X),
            "Itu satu head selebar penuh. Rata-rata dua head bukan satu head yang lebih lebar.",
            "That is one head of full width. The mean of two heads is not one wider head.",
        ),
        Mistake(
            lambda: row(CLASS),
            "Itu baris di head pertama saja.",
            "That is the row in the first head alone.",
        ),
        Mistake(
            lambda: row(TOPIC),
            "Itu baris di head kedua saja.",
            "That is the row in the second head alone.",
        ),
    ),
    "split": Exercise(
        lambda: split_heads(TOKENS, 2),
        Mistake(
            lambda: by_reshape(TOKENS),
            "Head terpotong dengan cara yang keliru: bentuknya benar, tetapi satu baris kini "
            "memuat bagian dari beberapa token. Potong kolomnya dulu, baru tukar sumbunya.",
            "Heads split the wrong way: the shape is right, but a row now holds parts of several "
            "tokens. Cut the columns first, then swap the axes.",
        ),
        Mistake(
            lambda: every_other(TOKENS),
            "Head terpotong dengan cara yang keliru: kolomnya berselang-seling, padahal kolom satu "
            "head bersebelahan.",
            "Heads split the wrong way: their columns are interleaved, where those of one head "
            "stand side by side.",
        ),
        Mistake(
            lambda: TOKENS.reshape(4, 2, 3),
            "Sumbunya belum ditukar: bentuk (T, H, d_k) harus menjadi (H, T, d_k).",
            "The axes are not swapped yet: (T, H, d_k) has to become (H, T, d_k).",
        ),
        ask=lambda split: split(TOKENS.copy(), 2),
    ),
    "merge": Exercise(
        lambda: merge_heads(HEADS),
        Mistake(
            lambda: HEADS.reshape(4, 6),
            "Sumbunya belum ditukar: satu baris kini berisi beberapa token dari satu head.",
            "The axes are not swapped: a row now holds several tokens of one head.",
        ),
        Mistake(
            lambda: HEADS.transpose(1, 2, 0).reshape(4, 6),
            "Kolom kedua head berselang-seling; seharusnya bersebelahan, head demi head.",
            "The columns of the heads are interleaved; they belong side by side, head by head.",
        ),
        Mistake(
            lambda: HEADS.mean(axis=0),
            "Head dirangkai, bukan dirata-ratakan: temuan setiap head harus tetap terpisah.",
            "Heads are concatenated, not averaged: what each one found has to stay apart.",
        ),
        Mistake(
            lambda: HEADS.sum(axis=0),
            "Head dirangkai, bukan dijumlahkan: temuan setiap head harus tetap terpisah.",
            "Heads are concatenated, not added: what each one found has to stay apart.",
        ),
        ask=lambda merge: merge(HEADS.copy()),
    ),
    "output_projection": Exercise(
        lambda: joined() @ W_O,
        Mistake(
            joined,
            "Itu baru rangkaian kedua head; W_O belum dipakai.",
            "That is only the two heads side by side; W_O is not used yet.",
        ),
        Mistake(
            lambda: joined() @ W_O.T,
            "W_O terpakai dalam keadaan tertranspos. Di sini W_O berbentuk (in, out).",
            "W_O is used transposed. Here it is (in, out).",
        ),
        Mistake(
            lambda: (HEADS[0] + HEADS[1]) @ W_O[:3],
            "Kedua head dijumlahkan sebelum W_O, sehingga memakai baris W_O yang sama. Setiap head "
            "punya barisnya sendiri.",
            "The heads are added before W_O, and so use the same rows of it. Each head has rows of "
            "its own.",
        ),
        Mistake(
            lambda: np.hstack([HEADS[1], HEADS[0]]) @ W_O,
            "Urutan head tertukar: baris-baris atas W_O milik head pertama.",
            "The heads are in the wrong order: the upper rows of W_O belong to the first one.",
        ),
        ask=lambda project: project(HEADS[0].copy(), HEADS[1].copy(), W_O.copy()),
    ),
    "causal": Exercise(
        causal,
        Mistake(
            lambda: causal().T,
            "Terbalik: mask ini memperlihatkan masa depan dan menutup masa lalu.",
            "Upside down: this mask shows the future and blocks the past.",
        ),
        Mistake(
            lambda: ~causal(),
            "Polaritasnya terbalik: di torch.nn.MultiheadAttention True berarti ditutup, sedangkan "
            "di sini True berarti boleh.",
            "The polarity is upside down: in torch.nn.MultiheadAttention True means blocked, while "
            "here True means may attend.",
        ),
        Mistake(
            lambda: causal() & ~np.eye(4, dtype=bool),
            "Diagonalnya ikut tertutup: setiap token boleh memperhatikan dirinya sendiri.",
            "The diagonal is blocked, too: every token may attend to itself.",
        ),
    ),
    "padding": Exercise(
        lambda: np.arange(3) >= np.array([[3], [1]]),
        Mistake(
            lambda: np.arange(3) < np.array([[3], [1]]),
            "Mask-nya terbalik: untuk torch.nn.MultiheadAttention, True berarti ditutup.",
            "The mask is upside down: for torch.nn.MultiheadAttention, True means blocked.",
        ),
        Mistake(
            lambda: np.arange(3) >= np.array([[3], [1]]) - 1,
            "Token terakhir yang sungguhan ikut tertutup: panjangnya meleset satu.",
            "The last real token is blocked, too: the length is off by one.",
        ),
        Mistake(
            lambda: np.arange(3) > np.array([[3], [1]]),
            "Satu token padding masih terbuka: panjangnya meleset satu.",
            "One padding token is still open: the length is off by one.",
        ),
    ),
    "permutation": Exercise(
        lambda: weights(TOKENS[ORDER]),
        Mistake(
            lambda: weights(TOKENS),
            "Bobotnya ikut berpindah bersama tokennya: attention ekuivarian, bukan invarian.",
            "The weights move with their tokens: attention is equivariant, not invariant.",
        ),
        Mistake(
            lambda: weights(TOKENS)[:, ORDER],
            "Baru barisnya (query) yang berpindah; kolomnya (key) juga.",
            "Only the rows (queries) have moved; so do the columns (keys).",
        ),
        Mistake(
            lambda: weights(TOKENS)[:, :, ORDER],
            "Baru kolomnya (key) yang berpindah; barisnya (query) juga.",
            "Only the columns (keys) have moved; so do the rows (queries).",
        ),
        Mistake(
            lambda: weights(TOKENS[np.argsort(ORDER)]),
            "Permutasinya terbalik: baris ke-i milik token order[i].",
            "That is the inverse permutation: row i belongs to token order[i].",
        ),
        ask=lambda permute: permute(weights(TOKENS), ORDER.copy()),
    ),
    "shapes": Exercise(
        lambda: cross_weights().shape,
        Mistake(
            lambda: cross_weights().swapaxes(-2, -1).shape,
            "Query dan key tertukar: baris milik query, kolom milik key.",
            "Queries and keys are swapped: rows belong to queries, columns to keys.",
        ),
        Mistake(
            lambda: cross_weights().mean(axis=1).shape,
            "Itu rata-rata semua head, seperti yang diberikan PyTorch bila tidak diminta lain.",
            "That is the mean over the heads, which PyTorch returns unless told otherwise.",
        ),
        Mistake(
            lambda: cross_weights()[..., :5].shape,
            "Itu self-attention. Di sini banyaknya key berbeda dari banyaknya query.",
            "That is self-attention. Here there are more keys than queries.",
        ),
    ),
    "parameters": Exercise(
        lambda: 4 * (512 * 512 + 512),
        Mistake(
            lambda: 4 * 512 * 512,
            "Biasnya terlewat: keempat proyeksi masing-masing punya satu vektor bias.",
            "The biases are missing: each of the four projections has a vector of them.",
        ),
        Mistake(
            lambda: 3 * (512 * 512 + 512),
            "Proyeksi keluaran W_O terlewat.",
            "The output projection W_O is missing.",
        ),
        Mistake(
            lambda: 8 * 3 * (512 * 512 + 512) + 512 * 512 + 512,
            "Head dihitung selebar penuh. Satu head hanya memakai d_k kolom dari setiap proyeksi.",
            "Each head is counted at full width. A head uses only d_k columns of each projection.",
        ),
        Mistake(
            lambda: 3 * (512 * 64 + 64) + 512 * 512 + 512,
            "Baru satu head yang dihitung; kolom head-head lainnya belum.",
            "Only one head is counted; the columns of the others are missing.",
        ),
    ),
    "cost": Exercise(
        lambda: 2 * 10 * 10 * 3,
        Mistake(
            lambda: 2 * 10 * 10 * 6,
            "Head dihitung selebar penuh: di dalam satu head, satu skor butuh d_k perkalian.",
            "Each head is counted at full width: inside a head, a score takes d_k multiplications.",
        ),
        Mistake(
            lambda: 10 * 10 * 3,
            "Itu satu head saja.",
            "That is one head alone.",
        ),
        Mistake(
            lambda: 2 * 10 * 10,
            "Itu banyaknya skor. Setiap skor masih butuh d_k perkalian.",
            "That is the number of scores. Each of them takes d_k multiplications.",
        ),
        Mistake(
            lambda: 10 * 6 * 6,
            "Itu satu proyeksi. Skor adalah hasil kali titik antara query dan key.",
            "That is one projection. Scores are the dot products of queries and keys.",
        ),
    ),
    "bug_heads": Exercise(
        output,
        Mistake(lambda: layer(split=by_reshape), *AS_GIVEN),
        Mistake(
            lambda: layer(split=every_other),
            "Head terpotong dengan cara yang keliru: kolomnya berselang-seling.",
            "Heads split the wrong way: their columns are interleaved.",
        ),
        Mistake(
            lambda: multi_head_attention(TOKENS, projections=LAYER, num_heads=1)[0],
            "Itu satu head selebar penuh: masukannya tidak dipotong lagi.",
            "That is one head of full width: nothing is cut any more.",
        ),
        ask=lambda repaired: repaired(LAYER, 2)(TOKENS.copy()),
    ),
    "bug_sums": Exercise(
        output,
        Mistake(lambda: layer(weigh=normalise(axis=-2)), *AS_GIVEN),
        Mistake(
            lambda: layer(weigh=normalise(axis=-3)),
            "Sumbunya keliru: bobot dibagi jumlahnya di semua head. Setiap barislah yang harus "
            "berjumlah satu.",
            "Wrong axis: the weights are divided by their sum over the heads. It is each row that "
            "has to sum to one.",
        ),
        Mistake(
            lambda: layer(weigh=normalise(axis=(-2, -1))),
            "Dibagi jumlah seluruh matriks. Setiap barislah yang harus berjumlah satu.",
            "Divided by the sum of the whole matrix. It is each row that has to sum to one.",
        ),
        ask=lambda repaired: repaired(LAYER, 2)(TOKENS.copy()),
    ),
    "bug_mask": Exercise(
        lambda: output(allow=NEAR),
        Mistake(lambda: layer(weigh=lambda scores: softmax(scores) * NEAR), *AS_GIVEN),
        Mistake(output, *MASK_IGNORED),
        Mistake(lambda: output(allow=~NEAR), *UPSIDE_DOWN),
        Mistake(
            lambda: layer(weigh=lambda scores: softmax(scores * NEAR)),
            *ZERO_SCORE,
        ),
        Mistake(
            lambda: output(allow=NEAR.T),
            "Mask-nya ditranspos: barisnya adalah query, kolomnya key.",
            "The mask is transposed: its rows are queries, its columns keys.",
        ),
        ask=lambda repaired: repaired(LAYER, 2)(TOKENS.copy(), NEAR.copy()),
    ),
}
