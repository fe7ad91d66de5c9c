"""A small model of Paddle."""

import paddle
import paddle.nn.functional as F
from paddle import nn

paddle.seed(0)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2D(3, 8, 3, padding=1)
        self.bn = nn.BatchNorm2D(8)
        self.fc = nn.Linear(8 * 16, 10)
        self.emb = nn.Embedding(10, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x, t):
        y = F.relu(self.bn(self.conv(x)))
        y = F.max_pool2d(y, 2)
        y = self.fc(paddle.flatten(y, 1))
        z = self.norm(self.emb(t)) * 2 + 1
        z = F.softmax(paddle.matmul(z, z.transpose([0, 2, 1])), axis=-1)
        return y, paddle.concat([z, z[:, :1]], axis=1)[:, 0].mean()


net = Net()
opt = paddle.optimizer.AdamW(1e-3, parameters=net.parameters())
for _ in range(3):
    x = paddle.randn([2, 3, 8, 8])
    t = paddle.randint(0, 10, [2, 5])
    y, z = net(x, t)
    loss = F.cross_entropy(y, paddle.to_tensor([1, 2])) + z
    loss.backward()
    opt.step()
    opt.clear_grad()
print(float(loss).hex())
print(float(paddle.log(paddle.to_tensor([-1.0]))))
net.eval()
print(float(paddle.jit.to_static(net)(x, t)[1]).hex())
