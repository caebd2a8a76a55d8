"""Writes x.npy and y.npy: 1200 images of 12 x 12 pixels with noise, each of a square, a disc, a cross or a stripe."""

import numpy as np

SIDE, COUNT = 12, 1200
random = np.random.RandomState(42)  # its numbers are the same in every version of NumPy
rows, cols = np.mgrid[:SIDE, :SIDE]
y = random.randint(0, 4, COUNT).astype(np.uint8)
x = np.empty((COUNT, SIDE, SIDE), np.uint8)
for i, label in enumerate(y):
    row, col = random.randint(4, 8, 2)  # the centre
    size = random.randint(2, 4)
    down, right = abs(rows - row), abs(cols - col)
    shape = [
        np.maximum(down, right) == size,  # the outline of a square
        down**2 + right**2 <= size**2,  # a disc
        (np.minimum(down, right) == 0) & (np.maximum(down, right) <= size),  # a cross
        abs((rows - row) - (cols - col)) <= size - 2,  # a stripe
    ][label]
    x[i] = np.clip(shape * random.randint(70, 160) + random.randint(0, 130, shape.shape), 0, 255)
np.save("x.npy", x)
np.save("y.npy", y)
