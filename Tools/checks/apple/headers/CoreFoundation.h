// The Core Foundation types that the keychain's calls take.

#pragma once
#include <ObjectiveC.h>

#define CF_BRIDGED_TYPE(T) __attribute__((objc_bridge(T)))

@class NSArray;
@class NSData;
@class NSDictionary;
@class NSString;

typedef int OSStatus;
typedef unsigned long CFTypeID;
typedef const CF_BRIDGED_TYPE(id) void *CFTypeRef;
typedef const struct CF_BRIDGED_TYPE(NSString) __CFString *CFStringRef;
typedef const struct CF_BRIDGED_TYPE(NSArray) __CFArray *CFArrayRef;
typedef const struct CF_BRIDGED_TYPE(NSData) __CFData *CFDataRef;
typedef const struct CF_BRIDGED_TYPE(NSDictionary) __CFDictionary *CFDictionaryRef;

#pragma clang arc_cf_code_audited begin
#pragma clang assume_nonnull begin
CFTypeID CFGetTypeID(CFTypeRef object);
#pragma clang assume_nonnull end
#pragma clang arc_cf_code_audited end
