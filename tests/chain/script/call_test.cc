#include "chain/shim/call.h"

#include <gmock/gmock.h>

namespace assay::chain::shim {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Call sample(const std::string& word) {
  return {{"python3.7", word, ""}, {"A=1", "B=two\nlines"}, "/x/project", "pipe:[7]", "/x/log"};
}

TEST(Call, IsTheSameAfterItWasWrittenAndRead) {
  const std::string text = encode(sample("train.py")) + encode(sample("eval.py"));
  std::string_view rest = text;
  EXPECT_EQ(take_call(rest), sample("train.py"));
  EXPECT_EQ(take_call(rest), sample("eval.py"));
  EXPECT_EQ(rest, "");
}

TEST(Call, ACutOrForeignRecordIsNone) {
  const std::string whole = encode(sample("train.py"));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::string_view rest = std::string_view(whole).substr(0, length);
    EXPECT_FALSE(take_call(rest)) << length;
    EXPECT_EQ(rest.size(), length);
  }
  std::string_view newer = "assay-call 2 0\n";
  EXPECT_FALSE(take_call(newer));
  // Says that it has more words than there are.
  std::string many = whole;
  many.replace(many.find("3\0", 0, 2), 1, "9");
  std::string_view cut = many;
  EXPECT_FALSE(take_call(cut));
}

TEST(Call, OutputsAreValuesOfKeysThatSaveOrOut) {
  EXPECT_THAT(outputs_of({"python", "train.py", "--save_dir", "./a/b", "-o",
                          "Global.output_dir=c/d", "--output-dir=./log.d/x.log"}),
              ElementsAre("./a/b", "c/d", "./log.d/x.log"));
  EXPECT_THAT(outputs_of({"python", "train.py", "--save_interval", "20", "--output_op", "softmax",
                          "--pretrained=./a/b", "save=https://x/y", "--save_dir", "-o"}),
              IsEmpty());
  EXPECT_TRUE(is_file_name("./out/model.onnx"));
  EXPECT_FALSE(is_file_name("./out/norm_train_nodes_1.log"));
}

TEST(Call, AnswersCarryTheirLength) {
  for (const std::size_t bytes : {0U, 1U, 255U, 256U, 65'536U, 16'777'217U}) {
    const std::string head = answer_head(Answer::errors, bytes);
    EXPECT_EQ(head.size(), kAnswerHead);
    EXPECT_EQ(head[0], '2');
    EXPECT_EQ(bytes_after(head), bytes);
  }
}

TEST(Call, AnErrandIsNoStage) {
  EXPECT_TRUE(is_errand({"python3.7", "-V"}));
  EXPECT_TRUE(is_errand({"/usr/bin/python3", "-m", "pip", "install", "x"}));
  EXPECT_TRUE(is_errand({"python", "-c", "print(1)"}));
  EXPECT_FALSE(is_errand({"python", "train.py", "-c"}));
  EXPECT_FALSE(is_errand({"paddle2onnx", "-V"}));
}

}  // namespace
}  // namespace assay::chain::shim
