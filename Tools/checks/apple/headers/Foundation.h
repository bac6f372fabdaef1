// The classes of Foundation that are Objective-C's.

#pragma once
#include <CoreFoundation.h>
#include <Darwin.h>
#include <Security.h>

#define SENDABLE __attribute__((swift_attr("@Sendable")))
#define NAMED(name) __attribute__((swift_name(#name)))
#define BRIDGED(name) __attribute__((swift_bridge(#name)))
#define CONSTANTS(type, name) \
    enum name : type name; \
    enum __attribute__((enum_extensibility(open))) name : type

#pragma clang assume_nonnull begin

@protocol NSCopying
@end

BRIDGED(Swift.String) SENDABLE
@interface NSString : NSObject
@end

BRIDGED(Swift.Array)
@interface NSArray<__covariant Element> : NSObject
@end

BRIDGED(Swift.Dictionary)
@interface NSDictionary<Key, __covariant Value> : NSObject
@end

BRIDGED(Foundation.Data) SENDABLE
@interface NSData : NSObject
@end

BRIDGED(Swift.Error) SENDABLE
@interface NSError : NSObject
@property(readonly) NSInteger code;
@property(readonly, copy) NSString *localizedDescription;
@end

BRIDGED(Foundation.URL) SENDABLE
@interface NSURL : NSObject
@end

BRIDGED(Foundation.URLRequest) SENDABLE
@interface NSURLRequest : NSObject
@end

typedef CONSTANTS(NSInteger, NSQualityOfService) {
    NSQualityOfServiceUserInteractive = 0x21,
    NSQualityOfServiceUserInitiated = 0x19,
    NSQualityOfServiceUtility = 0x11,
    NSQualityOfServiceBackground = 0x09,
    NSQualityOfServiceDefault = -1,
} NAMED(QualityOfService);

NAMED(Thread)
@interface NSThread : NSObject
- (instancetype)initWithBlock:(void (^SENDABLE)(void))block;
+ (void)detachNewThreadWithBlock:(void (^SENDABLE)(void))block;
@property(nullable, copy) NSString *name;
@property NSQualityOfService qualityOfService;
- (void)start;
@end

NAMED(OperationQueue) SENDABLE
@interface NSOperationQueue : NSObject
@property NSInteger maxConcurrentOperationCount;
@end

// Replies

NAMED(URLResponse) SENDABLE
@interface NSURLResponse : NSObject
@property(nullable, readonly, copy) NSURL *URL;
@end

NAMED(HTTPURLResponse) SENDABLE
@interface NSHTTPURLResponse : NSURLResponse
@property(readonly) NSInteger statusCode;
@property(readonly, copy) NSDictionary *allHeaderFields;
@end

// Challenges

extern NSString *const NSURLAuthenticationMethodServerTrust;
extern NSString *const NSURLAuthenticationMethodClientCertificate;

NAMED(URLProtectionSpace) SENDABLE
@interface NSURLProtectionSpace : NSObject
@property(readonly, copy) NSString *authenticationMethod;
@end

NAMED(URLAuthenticationChallenge) SENDABLE
@interface NSURLAuthenticationChallenge : NSObject
@property(readonly, copy) NSURLProtectionSpace *protectionSpace;
@end

typedef CONSTANTS(NSUInteger, NSURLCredentialPersistence) {
    NSURLCredentialPersistenceNone,
    NSURLCredentialPersistenceForSession,
} NAMED(URLCredential.Persistence);

NAMED(URLCredential) SENDABLE
@interface NSURLCredential : NSObject
- (instancetype)initWithIdentity:(SecIdentityRef)identity
                    certificates:(nullable NSArray *)certificates
                     persistence:(NSURLCredentialPersistence)persistence;
@end

// Sessions

@class NSURLSessionDataTask;
@class NSURLSessionTask;
@class NSURLSessionUploadTask;
@protocol NSURLSessionDelegate;

NAMED(URLCache) SENDABLE
@interface NSURLCache : NSObject
@end

NAMED(HTTPCookieStorage) SENDABLE
@interface NSHTTPCookieStorage : NSObject
@end

NAMED(URLCredentialStorage) SENDABLE
@interface NSURLCredentialStorage : NSObject
@end

typedef CONSTANTS(uint16_t, tls_protocol_version_t) {
    tls_protocol_version_TLSv12 NAMED(TLSv12) = 0x0303,
    tls_protocol_version_TLSv13 NAMED(TLSv13) = 0x0304,
};

typedef CONSTANTS(NSUInteger, NSURLRequestCachePolicy) {
    NSURLRequestUseProtocolCachePolicy = 0,
    NSURLRequestReloadIgnoringLocalCacheData = 1,
} NAMED(NSURLRequest.CachePolicy);

NAMED(URLSessionConfiguration) SENDABLE
@interface NSURLSessionConfiguration : NSObject
@property(class, readonly, strong) NSURLSessionConfiguration *ephemeralSessionConfiguration
    NAMED(ephemeral);
@property NSURLRequestCachePolicy requestCachePolicy;
+ (NSURLSessionConfiguration *)backgroundSessionConfigurationWithIdentifier:(NSString *)identifier
    NAMED(background(withIdentifier:));
@property double timeoutIntervalForRequest;
@property double timeoutIntervalForResource;
@property tls_protocol_version_t TLSMinimumSupportedProtocolVersion
    __attribute__((availability(ios, introduced = 13.0), availability(macos, introduced = 10.15)));
@property(nullable, copy) NSDictionary *connectionProxyDictionary;
@property(nullable, retain) NSHTTPCookieStorage *HTTPCookieStorage;
@property(nullable, retain) NSURLCredentialStorage *URLCredentialStorage;
@property(nullable, retain) NSURLCache *URLCache;
@end

NAMED(URLSession) SENDABLE
@interface NSURLSession : NSObject
+ (NSURLSession *)sessionWithConfiguration:(NSURLSessionConfiguration *)configuration
                                  delegate:(nullable id<NSURLSessionDelegate>)delegate
                             delegateQueue:(nullable NSOperationQueue *)queue;
- (void)invalidateAndCancel;
- (void)finishTasksAndInvalidate;
- (void)getAllTasksWithCompletionHandler:
    (void (^SENDABLE)(NSArray<__kindof NSURLSessionTask *> *tasks))completionHandler;
- (NSURLSessionUploadTask *)uploadTaskWithRequest:(NSURLRequest *)request
                                         fromFile:(NSURL *)fileURL;
- (NSURLSessionDataTask *)dataTaskWithRequest:(NSURLRequest *)request;
@end

NAMED(URLSessionTask) SENDABLE
@interface NSURLSessionTask : NSObject
@property(readonly) NSUInteger taskIdentifier;
@property(nullable, readonly, copy) NSURLRequest *originalRequest;
@property(nullable, readonly, copy) NSURLResponse *response;
@property(nullable, copy) NSString *taskDescription;
- (void)cancel;
- (void)resume;
@end

NAMED(URLSessionDataTask) SENDABLE
@interface NSURLSessionDataTask : NSURLSessionTask
@end

NAMED(URLSessionUploadTask) SENDABLE
@interface NSURLSessionUploadTask : NSURLSessionDataTask
@end

typedef CONSTANTS(NSInteger, NSURLSessionAuthChallengeDisposition) {
    NSURLSessionAuthChallengeUseCredential = 0,
    NSURLSessionAuthChallengePerformDefaultHandling = 1,
    NSURLSessionAuthChallengeCancelAuthenticationChallenge = 2,
    NSURLSessionAuthChallengeRejectProtectionSpace = 3,
} NAMED(NSURLSession.AuthChallengeDisposition);

typedef CONSTANTS(NSInteger, NSURLSessionResponseDisposition) {
    NSURLSessionResponseCancel = 0,
    NSURLSessionResponseAllow = 1,
} NAMED(NSURLSession.ResponseDisposition);

NAMED(URLSessionTaskTransactionMetrics) SENDABLE
@interface NSURLSessionTaskTransactionMetrics : NSObject
@property(nullable, copy, readonly) NSString *networkProtocolName;
@end

NAMED(URLSessionTaskMetrics) SENDABLE
@interface NSURLSessionTaskMetrics : NSObject
@property(copy, readonly) NSArray<NSURLSessionTaskTransactionMetrics *> *transactionMetrics;
@end

NAMED(URLSessionDelegate) SENDABLE
@protocol NSURLSessionDelegate <NSObject>
@optional
- (void)URLSessionDidFinishEventsForBackgroundURLSession:(NSURLSession *)session;
@end

NAMED(URLSessionTaskDelegate) SENDABLE
@protocol NSURLSessionTaskDelegate <NSURLSessionDelegate>
@optional
- (void)URLSession:(NSURLSession *)session
                   task:(NSURLSessionTask *)task
    didReceiveChallenge:(NSURLAuthenticationChallenge *)challenge
      completionHandler:(void (^SENDABLE)(NSURLSessionAuthChallengeDisposition disposition,
                                          NSURLCredential *_Nullable credential))completionHandler;
- (void)URLSession:(NSURLSession *)session
                          task:(NSURLSessionTask *)task
    willPerformHTTPRedirection:(NSHTTPURLResponse *)response
                    newRequest:(NSURLRequest *)request
             completionHandler:(void (^SENDABLE)(NSURLRequest *_Nullable))completionHandler;
- (void)URLSession:(NSURLSession *)session
                          task:(NSURLSessionTask *)task
    didFinishCollectingMetrics:(NSURLSessionTaskMetrics *)metrics;
- (void)URLSession:(NSURLSession *)session
                    task:(NSURLSessionTask *)task
    didCompleteWithError:(nullable NSError *)error;
@end

NAMED(URLSessionDataDelegate) SENDABLE
@protocol NSURLSessionDataDelegate <NSURLSessionTaskDelegate>
@optional
- (void)URLSession:(NSURLSession *)session
              dataTask:(NSURLSessionDataTask *)dataTask
    didReceiveResponse:(NSURLResponse *)response
     completionHandler:
         (void (^SENDABLE)(NSURLSessionResponseDisposition disposition))completionHandler;
- (void)URLSession:(NSURLSession *)session
          dataTask:(NSURLSessionDataTask *)dataTask
    didReceiveData:(NSData *)data;
@end

#pragma clang assume_nonnull end
