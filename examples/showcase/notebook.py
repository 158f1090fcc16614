"""A notebook, cell by cell: classes of Rust in NumPy, matplotlib, pandas and scikit-learn, and no word of DLPack.

    python examples/showcase/notebook.py [folder]

What is printed is asserted, and the picture is written into the folder.
"""

# %% Everything is imported as in any other notebook.
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from dlpack_showcase import CartPole, Image, PointCloud, Samples, Trace
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
folder.mkdir(parents=True, exist_ok=True)

# %% An object with pixels is an array wherever one is wanted, and nothing is copied.
image = Image(240, 320)
pixels = np.asarray(image)
assert pixels.shape == (240, 320, 3) and pixels.dtype == np.uint8 and not pixels.flags.writeable
assert np.shares_memory(pixels, np.asarray(image)) and memoryview(image).nbytes == pixels.nbytes
assert np.mean(image) == pixels.mean()
assert (np.maximum(image, 128) >= 128).all()
darker = np.array(image, dtype=np.float32) / 2
print(f"an image: {pixels.shape}, {pixels.dtype}, mean {np.mean(image):.2f}, in halves {darker.mean():.2f}")

# %% Columns of records are columns of a table.
cloud = PointCloud(rings=32, steps=720)
points = pd.DataFrame({name: getattr(cloud, name) for name in ["x", "y", "z", "intensity", "ring", "ground"]})
assert len(points) == len(cloud) == len(cloud.x) and points["z"].dtype == np.float32 and points["ground"].dtype == bool
assert np.array_equal(points["z"], cloud.z)
trees = points[~points["ground"]]
assert trees["z"].mean() > points[points["ground"]]["z"].mean()
print(points.groupby("ground")[["z", "intensity"]].mean().round(2).to_string())

# %% A collection, whose class says `iterable`, is a column by itself, and a whole table.
trace = Trace()
trace.extend([3.0, 1.0, 2.0])
assert pd.Series(trace).dtype == np.float64 and pd.DataFrame(trace, columns=["volts"])["volts"].max() == 3.0
assert points.head(3).assign(volts=trace)["volts"].tolist() == [float(value) for value in trace] == [3.0, 1.0, 2.0]

# %% What an environment played trains a model, as it is.
batch = CartPole().play(5000)
features = StandardScaler().fit_transform(batch.observations)
model = LogisticRegression().fit(features, batch.actions)
score = model.score(features, batch.actions)
assert score > 0.9
assert np.mean(batch.rewards) == batch.rewards.numpy().mean()
print(f"a player like ours: {score:.3f} of {len(batch)} moves, mean reward {np.mean(batch.rewards):.3f}")

# %% A picture of all of it.
figure, ((left, right), (below, last)) = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
left.imshow(image)
left.set_title("imshow(image)")
right.scatter(cloud.x, cloud.y, c=cloud.z, s=1)
right.set_aspect("equal")
right.set_title("scatter(cloud.x, cloud.y, c=cloud.z)")
below.plot(Samples.chord(400, "float32"))
below.set_title('plot(Samples.chord(400, "float32"))')
last.hist(batch.observations[:, 2], bins=40)
last.set_title("hist(batch.observations[:, 2])")
figure.savefig(folder / "notebook.png", dpi=80)
print(f"{folder / 'notebook.png'}")
