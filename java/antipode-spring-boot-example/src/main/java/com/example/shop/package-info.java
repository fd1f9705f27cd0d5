/** A Spring Boot application without a line of Antipode. Begin with {@link com.example.shop.Shop}. */
package com.example.shop;
