#pragma once

// Checksums of a database's pages. SQLite itself notices no changed byte of a value. A database
// that is made with kReservedBytes at the end of each page keeps there the XXH3 of the page and its
// position; a page that was read and differs is SQLITE_IOERR_DATA. Other databases are read and
// written as they are. As SQLite's own extension cksumvfs does it, which Debian does not package.

namespace assay {

inline constexpr int kReservedBytes = 8;

// Names of SQLite's file layers (VFS) with checksums: the system's, and the same without locks.
// Their iVersion 1 has no shared memory, so a database in WAL mode needs exclusive locking.
const char* checked_pages();
const char* checked_pages_unlocked();

}  // namespace assay
