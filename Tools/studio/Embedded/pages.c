// The files of Tools/studio/Pages as constants of the executable. As array literals of Swift they took 34 s to
// compile, here they take 0.1 s (Spec/decisions/0060-minutes.md). MailedPageTests compares the list with the folder.

#include "studio_pages.h"

// In the language modes before C23, clang warns that #embed is new; it has it since version 19.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const struct studio_page pages[] = {
    {"banner.js", (const char[]){
#embed "../Pages/banner.js" suffix(, 0)
    }},
    {"compare.js", (const char[]){
#embed "../Pages/compare.js" suffix(, 0)
    }},
    {"detail.js", (const char[]){
#embed "../Pages/detail.js" suffix(, 0)
    }},
    {"dom.js", (const char[]){
#embed "../Pages/dom.js" suffix(, 0)
    }},
    {"failure.js", (const char[]){
#embed "../Pages/failure.js" suffix(, 0)
    }},
    {"files.js", (const char[]){
#embed "../Pages/files.js" suffix(, 0)
    }},
    {"filter.js", (const char[]){
#embed "../Pages/filter.js" suffix(, 0)
    }},
    {"histogram.js", (const char[]){
#embed "../Pages/histogram.js" suffix(, 0)
    }},
    {"index.html", (const char[]){
#embed "../Pages/index.html" suffix(, 0)
    }},
    {"json.js", (const char[]){
#embed "../Pages/json.js" suffix(, 0)
    }},
    {"keys.js", (const char[]){
#embed "../Pages/keys.js" suffix(, 0)
    }},
    {"list.js", (const char[]){
#embed "../Pages/list.js" suffix(, 0)
    }},
    {"mailed.js", (const char[]){
#embed "../Pages/mailed.js" suffix(, 0)
    }},
    {"menu.js", (const char[]){
#embed "../Pages/menu.js" suffix(, 0)
    }},
    {"outbox.js", (const char[]){
#embed "../Pages/outbox.js" suffix(, 0)
    }},
    {"page.js", (const char[]){
#embed "../Pages/page.js" suffix(, 0)
    }},
    {"plot.js", (const char[]){
#embed "../Pages/plot.js" suffix(, 0)
    }},
    {"preferences.js", (const char[]){
#embed "../Pages/preferences.js" suffix(, 0)
    }},
    {"route.js", (const char[]){
#embed "../Pages/route.js" suffix(, 0)
    }},
    {"segments.js", (const char[]){
#embed "../Pages/segments.js" suffix(, 0)
    }},
    {"served.js", (const char[]){
#embed "../Pages/served.js" suffix(, 0)
    }},
    {"slider.js", (const char[]){
#embed "../Pages/slider.js" suffix(, 0)
    }},
    {"source.js", (const char[]){
#embed "../Pages/source.js" suffix(, 0)
    }},
    {"status.js", (const char[]){
#embed "../Pages/status.js" suffix(, 0)
    }},
    {"studio.css", (const char[]){
#embed "../Pages/studio.css" suffix(, 0)
    }},
    {"studio.js", (const char[]){
#embed "../Pages/studio.js" suffix(, 0)
    }},
    {"table.js", (const char[]){
#embed "../Pages/table.js" suffix(, 0)
    }},
    {"takeout.js", (const char[]){
#embed "../Pages/takeout.js" suffix(, 0)
    }},
    {"text.js", (const char[]){
#embed "../Pages/text.js" suffix(, 0)
    }},
    {"timeline.js", (const char[]){
#embed "../Pages/timeline.js" suffix(, 0)
    }},
    {"views.js", (const char[]){
#embed "../Pages/views.js" suffix(, 0)
    }},
    {"windows.js", (const char[]){
#embed "../Pages/windows.js" suffix(, 0)
    }},
    {0, 0},
};

const struct studio_page *studio_pages(void) { return pages; }
