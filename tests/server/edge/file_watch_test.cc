#include "server/reload/file_watch.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "server/edge/support.h"

namespace ration {
namespace {

using testing::Folder;

// How many of `looks` looks report a change.
int reports(FileWatch& watch, int looks) {
    int count = 0;
    for (int i = 0; i < looks; ++i) {
        count += watch.changed() ? 1 : 0;
    }
    return count;
}

TEST(FileWatch, WhatWasThereIsNoChange) {
    const Folder folder;
    folder.write("a", "1");
    FileWatch watch({folder.path("a")});
    EXPECT_EQ(reports(watch, 3), 0);
}

TEST(FileWatch, AChangeIsReportedOnceWhenItRests) {
    const Folder folder;
    folder.write("a", "1");
    FileWatch watch({folder.path("a")});
    folder.write("a", "22");
    EXPECT_FALSE(watch.changed());  // seen for the first time
    EXPECT_TRUE(watch.changed());   // and did not move since
    EXPECT_EQ(reports(watch, 3), 0);
}

TEST(FileWatch, AFileBeingWrittenIsLeftAlone) {
    const Folder folder;
    folder.write("a", "");
    FileWatch watch({folder.path("a")});
    std::string text;
    for (int i = 0; i < 5; ++i) {
        text += "more ";
        folder.write("a", text);
        EXPECT_FALSE(watch.changed()) << i;
    }
    EXPECT_TRUE(watch.changed());
}

TEST(FileWatch, ARenameIntoPlaceIsAChange) {
    const Folder folder;
    folder.write("a", "1");
    FileWatch watch({folder.path("a")});
    folder.replace("a", "2");  // same size
    EXPECT_EQ(reports(watch, 3), 1);
}

TEST(FileWatch, AMissingFileIsWaitedFor) {
    const Folder folder;
    folder.write("a", "1");
    FileWatch watch({folder.path("a")});
    std::filesystem::remove(folder.path("a"));
    EXPECT_EQ(reports(watch, 3), 0);
    folder.write("a", "2");
    EXPECT_EQ(reports(watch, 3), 1);
}

TEST(FileWatch, ALinkThatPointsElsewhereIsAChange) {
    const Folder folder;
    folder.write("v1", "1");
    folder.write("v2", "2");
    std::filesystem::create_symlink(folder.path("v1"), folder.path("a"));
    FileWatch watch({folder.path("a")});
    std::filesystem::create_symlink(folder.path("v2"), folder.path("b"));
    std::filesystem::rename(folder.path("b"), folder.path("a"));
    EXPECT_EQ(reports(watch, 3), 1);
}

TEST(FileWatch, OtherPathsStartAnew) {
    const Folder folder;
    folder.write("a", "1");
    folder.write("b", "1");
    FileWatch watch({folder.path("a")});
    watch.watch({folder.path("a"), folder.path("b")});
    EXPECT_EQ(reports(watch, 3), 0);
    folder.replace("b", "2");
    EXPECT_EQ(reports(watch, 3), 1);
}

}  // namespace
}  // namespace ration
