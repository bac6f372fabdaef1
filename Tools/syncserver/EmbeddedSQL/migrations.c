// The migrations of Tools/syncserver/PostgreSQL/sql as constants of the executable, in their order.

#include "migrations.h"

// In the language modes before C23, clang warns that #embed is new; it has it since version 19.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const char *const migrations[] = {
    (const char[]){
#embed "../PostgreSQL/sql/0001_events.sql" suffix(, 0)
    },
    0,
};

const char *const *postgresql_migrations(void) { return migrations; }
