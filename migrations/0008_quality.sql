-- How well writing went, by day: extracted, duplicates, rejected, deletedByUser, loops.
CREATE TABLE quality (
  day TEXT NOT NULL,
  name TEXT NOT NULL,
  n INTEGER NOT NULL,
  PRIMARY KEY (day, name)
) STRICT, WITHOUT ROWID;
