#pragma once

// The real mobilenet_v3_small project with generated pictures, if Paddle and the material are
// present.

#include "cli_run.h"

namespace assay::chain {

// The interpreter with Paddle: ASSAY_PADDLE_PYTHON, or the checkout's own environment.
inline std::filesystem::path paddle_python() {
  const char* named = std::getenv("ASSAY_PADDLE_PYTHON");
  const std::filesystem::path python =
      named != nullptr
          ? named
          : std::filesystem::weakly_canonical(std::filesystem::path(ASSAY_SOURCE_DIR)) /
                ".venv/paddle/bin/python";
  return std::filesystem::exists(python) ? python : std::filesystem::path();
}

#define ASSAY_NEED_PADDLE(name)                       \
  const std::filesystem::path name = paddle_python(); \
  if (name.empty()) GTEST_SKIP() << "needs an environment with Paddle (.venv/paddle)"

// Runs a short Python program; true if its exit code is 0.
inline bool run_python(const std::filesystem::path& python, const std::filesystem::path& folder,
                       const std::string& program) {
  SpawnOptions options;
  options.argv = {python.string(), "-c", program};
  options.directory = folder.string();
  auto process = Process::spawn(options);
  if (!process) return false;
  const auto status = process->wait();
  return status && status->ok();
}

// Copies the project to `to` and draws small pictures of two classes (stripes and checks).
inline bool make_mobilenet(const std::filesystem::path& tipc, const std::filesystem::path& python,
                           const std::filesystem::path& to) {
  std::filesystem::copy(tipc / "mobilenet_v3_small", to, std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(to)) {
    std::filesystem::permissions(entry, std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
  }
  return run_python(python, to, R"(
import os, numpy
from PIL import Image
def draw(path, kind, seed):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    y, x = numpy.mgrid[0:72, 0:96]
    period = 6 + seed
    on = (x // period % 2) if kind == 'stripes' else ((x // period + y // period) % 2)
    picture = numpy.stack([on * 200 + 20, x * 2, y * 3], axis=-1).astype('uint8')
    Image.fromarray(picture).save(path, quality=90)
for kind in ('stripes', 'checks'):
    for i in range(4): draw(f'data/train/{kind}/{i}.jpeg', kind, i)
    for i in range(2): draw(f'data/val/{kind}/{i}.jpeg', kind, i + 4)
draw('images/demo.jpg', 'checks', 2)
)");
}

// The same picture through the layers as Python runs them.
inline constexpr const char* kDynamicInference = R"(
import sys
sys.path[:0] = ['.', 'deploy/inference_python']
import numpy, paddle, paddlevision
from PIL import Image
from preprocess_ops import ResizeImage, CenterCropImage, NormalizeImage, ToCHW, Compose
weights, image = sys.argv[1:]
net = paddle.nn.Sequential(paddlevision.models.mobilenet_v3_small(pretrained=weights), paddle.nn.Softmax())
net.eval()
prepare = Compose([ResizeImage(256), CenterCropImage(224), NormalizeImage(), ToCHW()])
picture = prepare(Image.open(image).convert('RGB'))
output = net(paddle.to_tensor(numpy.expand_dims(picture, 0).astype('float32'))).numpy().flatten()
print(f'{image}: class {output.argmax()} with {output.max()}')
)";

// Compares the log of a static inference with the dynamic one of the same weights.
inline CliResult compare_with_dynamic(const std::string& python,
                                      const std::filesystem::path& project,
                                      const std::filesystem::path& weights,
                                      const std::filesystem::path& log) {
  put(project / "dynamic.py", kDynamicInference);
  const CliResult dynamic =
      run_command(project, {python, "dynamic.py", weights.string(), "./images/demo.jpg"},
                  {"OMP_NUM_THREADS=1"});
  EXPECT_EQ(dynamic.code, 0) << dynamic.out;
  put(project / "dynamic.log", dynamic.out);
  return run_cli(project, {"compare", "--dynamic", "dynamic.log", "--static", log.string()});
}

// A params file of our own for it, CPU only; one epoch, and no AutoLog (infer.py imports it from a
// package that no registry has).
inline std::string mobilenet_params(const std::string& gpu_list = "-1",
                                    const std::string& trainer = "norm_train") {
  return "===train_params===\nmodel_name:mobilenet_v3_small\npython:python3\ngpu_list:" + gpu_list +
         "\nuse-gpu:False\n--epochs:lite_train_lite_infer=1\n--output-dir:./output/\n"
         "--batch-size:lite_train_lite_infer=4\n--pretrained:null\ntrain_model_name:latest."
         "pdparams\n"
         "--data-path:./data\n##\ntrainer:" +
         trainer + "\n" + trainer +
         ":train.py --workers=0 --lr=0.001 --print-freq=1\n##\n"
         "===eval_params===\neval:train.py --test-only --workers=0 --batch-size=4\n##\n"
         "===infer_params===\n--save-inference-dir:./output/infer/\n--pretrained:\n"
         "norm_export:tools/export_model.py --model=mobilenet_v3_small\n##\n"
         "train_model:./pretrain_models/none.pdparams\n"
         "infer_export:tools/export_model.py --model=mobilenet_v3_small\n##\n"
         "inference:deploy/inference_python/infer.py\n--use-gpu:False\n--batch-size:1\n"
         "--model-dir:./output/infer/\n--img-path:./images/demo.jpg\n--benchmark:False\n";
}

}  // namespace assay::chain
