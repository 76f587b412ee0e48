CREATE TABLE channels (
  id   INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  type TEXT NOT NULL CHECK (type IN ('kernel', 'user')),
  UNIQUE (name, type)
);

BEGIN;
INSERT INTO channels (id, name, type) VALUES (1, 'calls', 'kernel');
INSERT INTO groups (id, channel_id, type, owner_id, owner_name, value_type) VALUES (1, 1, 'kernel-global', NULL, NULL, 'signed-int-64');
INSERT INTO keys (id, name) VALUES (1, 'read');
INSERT INTO entries (group_id, part_id, key_id, value, has_overflow) VALUES (1, 0, 1, 48201, 0);
INSERT INTO keys (id, name) VALUES (2, 'it''s');
INSERT INTO entries (group_id, part_id, key_id, value, has_overflow) VALUES (1, 0, 2, -1, 1);
INSERT INTO entries (group_id, part_id, key_id, value, has_overflow) VALUES (1, 0, 3, 1, 0);
COMMIT;
