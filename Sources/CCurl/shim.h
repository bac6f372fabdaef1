// libcurl, and its variadic functions under names that Swift can call.

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <string.h>

static inline CURLcode curl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode curl_set_size(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode curl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

static inline CURLcode curl_set_pointer(CURL *easy, CURLoption option, const void *value) {
    return curl_easy_setopt(easy, option, value);
}

// For CURLOPT_WRITEFUNCTION and CURLOPT_HEADERFUNCTION.
static inline CURLcode curl_set_receiver(
    CURL *easy, CURLoption option, size_t (*receiver)(char *, size_t, size_t, void *)) {
    return curl_easy_setopt(easy, option, receiver);
}

// For CURLOPT_OPENSOCKETFUNCTION.
static inline CURLcode curl_set_opener(CURL *easy, curl_opensocket_callback opener, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, opener) : code;
}

// Opens the socket of a connection, which other programs do not inherit.
static inline curl_socket_t curl_open_socket(const struct curl_sockaddr *address) {
    // SOCK_CLOEXEC of Linux. Its name here would hide it from Swift files that import Glibc.
    const int close_on_exec = 02000000;
    return socket(address->family, address->socktype | close_on_exec, address->protocol);
}

static inline CURLcode curl_get_string(CURL *easy, CURLINFO info, const char **value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode curl_allow_http_only(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

static inline CURLcode curl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode curl_get_size(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

// Sets a client certificate with its key, PKCS #12, from memory. libcurl copies it.
static inline CURLcode curl_set_certificate(CURL *easy, const void *bytes, size_t count) {
#if LIBCURL_VERSION_NUM >= 0x074700
    struct curl_blob blob = {(void *)bytes, count, CURL_BLOB_COPY};
    return curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &blob);
#else
    return CURLE_NOT_BUILT_IN;
#endif
}

// Whether the libcurl that runs can present such a certificate: with OpenSSL only.
static inline int curl_presents_certificates(void) {
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    return LIBCURL_VERSION_NUM >= 0x074700 && info->version_num >= 0x074700 && info->ssl_version
        && strncmp(info->ssl_version, "OpenSSL", 7) == 0;
}
