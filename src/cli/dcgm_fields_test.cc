#include "cli/dcgm_fields.h"

#include <gtest/gtest.h>

#include "model/catalogue.h"

namespace gpuassay {
namespace {

TEST(DcgmFields, AreFoundByTheNameOfEitherVersion) {
  const DcgmField* field = FindDcgmField("DCGM_FI_DEV_FB_FREE");
  ASSERT_NE(field, nullptr);
  EXPECT_EQ(field->name49, "DCGM_FI_DEV_FB_FREE_BYTES");
  EXPECT_EQ(field->field, "memory_free_bytes");
  EXPECT_EQ(field->unit48, "MiB");
  EXPECT_EQ(field->kind48, "gauge");
  EXPECT_EQ(FindDcgmField("DCGM_FI_DEV_FB_FREE_BYTES"), field);
  EXPECT_EQ(DcgmFieldOf("memory_free_bytes"), field);
}

TEST(DcgmFields, NamesThatDoNotExistAreNotFound) {
  EXPECT_EQ(FindDcgmField("DCGM_FI_DEV_GPUUTIL"), nullptr);
  EXPECT_EQ(FindDcgmField(""), nullptr);
  EXPECT_EQ(DcgmFieldOf(""), nullptr);
}

TEST(DcgmFields, NameFieldsOfTheCatalogue) {
  std::size_t with_field = 0;
  for (const DcgmField& field : DcgmFields()) {
    if (field.field.empty()) continue;
    ++with_field;
    EXPECT_NE(FindMetric(field.field), nullptr) << field.field;
  }
  EXPECT_GT(with_field, 30u);
}

}  // namespace
}  // namespace gpuassay
