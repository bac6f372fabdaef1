#include <lz4.h>
// memchr
#include <string.h>
