// gRPC: retry policies made of the service configs that gRPC clients already have.

export { type HedgeData, rulesFromServiceConfig, type ServiceConfigRules } from './service-config.js'
export { policyFromServiceConfig, type ServicePolicyOptions } from './service-policy.js'
