// The keychain's items and PKCS #12 files.

#pragma once
#include <CoreFoundation.h>

#define RETAINED(type) __attribute__((cf_returns_retained)) type

#pragma clang arc_cf_code_audited begin
#pragma clang assume_nonnull begin

typedef struct CF_BRIDGED_TYPE(id) __SecIdentity *SecIdentityRef;
typedef struct CF_BRIDGED_TYPE(id) __SecCertificate *SecCertificateRef;

extern const CFStringRef kSecClass;
extern const CFStringRef kSecClassGenericPassword;
extern const CFStringRef kSecAttrAccessible;
extern const CFStringRef kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly;
extern const CFStringRef kSecAttrAccount;
extern const CFStringRef kSecAttrService;
extern const CFStringRef kSecAttrSynchronizable;
extern const CFStringRef kSecMatchLimit;
extern const CFStringRef kSecMatchLimitOne;
extern const CFStringRef kSecReturnData;
extern const CFStringRef kSecUseDataProtectionKeychain
    __attribute__((availability(ios, introduced = 13.0), availability(macos, introduced = 10.15)));
extern const CFStringRef kSecValueData;
extern const CFStringRef kSecImportExportPassphrase;
extern const CFStringRef kSecImportItemCertChain;
extern const CFStringRef kSecImportItemIdentity;
extern const CFStringRef kSecImportToMemoryOnly
    __attribute__((availability(ios, introduced = 18.0), availability(macos, introduced = 15.0)));

enum : OSStatus {
    errSecSuccess = 0,
    errSecItemNotFound = -25300,
    errSecDuplicateItem = -25299,
    errSecInteractionNotAllowed = -25308,
    errSecMissingEntitlement = -34018,
};

RETAINED(CFStringRef _Nullable) SecCopyErrorMessageString(OSStatus status, void *_Nullable reserved)
    __attribute__((availability(ios, introduced = 11.3), availability(macos, introduced = 10.3)));
OSStatus SecItemCopyMatching(CFDictionaryRef query, RETAINED(CFTypeRef _Nullable *_Nullable) result);
OSStatus SecItemAdd(CFDictionaryRef attributes, RETAINED(CFTypeRef _Nullable *_Nullable) result);
OSStatus SecItemUpdate(CFDictionaryRef query, CFDictionaryRef attributes);
OSStatus SecItemDelete(CFDictionaryRef query);
OSStatus SecPKCS12Import(
    CFDataRef content, CFDictionaryRef options, RETAINED(CFArrayRef _Nullable *_Nonnull) items);
CFTypeID SecIdentityGetTypeID(void);

#pragma clang assume_nonnull end
#pragma clang arc_cf_code_audited end
