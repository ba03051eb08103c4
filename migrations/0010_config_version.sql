-- Changes with every key, provider and setting, so that what is known of them can be believed while it stays the same.
-- When a key was last used and what was learned about a provider are no reason to read them again.
CREATE TABLE config_version (n INTEGER NOT NULL) STRICT;
INSERT INTO config_version (n) VALUES (0);

CREATE TRIGGER settings_added AFTER INSERT ON settings BEGIN UPDATE config_version SET n = n + 1; END;
CREATE TRIGGER settings_changed AFTER UPDATE ON settings BEGIN UPDATE config_version SET n = n + 1; END;
CREATE TRIGGER settings_removed AFTER DELETE ON settings BEGIN UPDATE config_version SET n = n + 1; END;

CREATE TRIGGER providers_added AFTER INSERT ON providers BEGIN UPDATE config_version SET n = n + 1; END;
CREATE TRIGGER providers_changed AFTER UPDATE OF
  id, base_url, api_key, headers, wire, system_role, models, timeouts, fallbacks, prices, passthrough_auth, enabled,
  is_default, created_at, updated_at
ON providers BEGIN UPDATE config_version SET n = n + 1; END;
CREATE TRIGGER providers_removed AFTER DELETE ON providers BEGIN UPDATE config_version SET n = n + 1; END;

CREATE TRIGGER api_keys_added AFTER INSERT ON api_keys BEGIN UPDATE config_version SET n = n + 1; END;
CREATE TRIGGER api_keys_changed AFTER UPDATE OF
  id, name, secret_hash, prefix, scopes, memory, max_tokens, models, requests_per_minute, tokens_per_day, shared_pool,
  user_header, user_field, created_at, expires_at, revoked_at
ON api_keys BEGIN UPDATE config_version SET n = n + 1; END;
CREATE TRIGGER api_keys_removed AFTER DELETE ON api_keys BEGIN UPDATE config_version SET n = n + 1; END;
