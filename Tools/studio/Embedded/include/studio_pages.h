#pragma once

// A file of Tools/studio/Pages.
struct studio_page {
    const char *name;
    // The content, which ends with a zero byte.
    const char *text;
};

// All files, then one without a name.
const struct studio_page *studio_pages(void);
